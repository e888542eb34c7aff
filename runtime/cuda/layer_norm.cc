#include "runtime/cuda/layer_norm.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

namespace {

// 8 blocks for each multiprocessor of an H200, and some more; their partial sums are small beside the rows.
constexpr std::size_t kMostBlocks = 1024;
constexpr std::size_t kLeastRows = 4;  // of a block
constexpr std::size_t kWarpThreads = 32;

std::size_t backward_blocks(std::size_t rows) {
  return std::clamp<std::size_t>((rows + kLeastRows - 1) / kLeastRows, 1, kMostBlocks);
}

}  // namespace

LaunchShape norm_shape(DType type, std::size_t rows, std::uint32_t columns, int multiprocessors) {
  const std::size_t warps =
      columns > kMostHeldNormColumns
          ? kNormThreads / kWarpThreads
          : norm_row_warps(columns, whole_vectors(type, columns) ? kNormLaneColumns : kNormLaneAny);
  return strided_shape(rows * warps * kWarpThreads, kNormThreads, multiprocessors);
}

LaunchShape norm_backward_shape(DType type, std::size_t rows, std::size_t columns) {
  const std::size_t vectors = whole_vectors(type, columns) ? columns / wide_elements(type) : columns;
  const std::size_t warps = (vectors + kWarpThreads - 1) / kWarpThreads;
  return {.columns = static_cast<std::uint32_t>(backward_blocks(rows)),
          .threads = static_cast<std::uint32_t>(
              std::clamp<std::size_t>(warps * kWarpThreads, kWarpThreads, kNormBackwardThreads))};
}

std::size_t LayerNorm::scratch_elements(std::size_t rows, std::size_t columns) {
  return 2 * columns * backward_blocks(rows);
}

absl::StatusOr<LayerNorm> LayerNorm::load(std::shared_ptr<const Context> context, const Columns& columns) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), layer_norm_image()));
  PL_LOAD_PAIR(const auto forward, module, LayerNormParams, layer_norm);
  PL_LOAD_PAIR(const auto forward_any, module, LayerNormParams, layer_norm_any);
  PL_LOAD_PAIR(const auto forward_wide, module, LayerNormParams, layer_norm_wide);
  PL_LOAD_PAIR(const auto backward, module, LayerNormBackwardParams, layer_norm_backward);
  PL_LOAD_PAIR(const auto backward_any, module, LayerNormBackwardParams, layer_norm_backward_any);
  PL_LOAD_PAIR(const auto backward_wide, module, LayerNormBackwardParams, layer_norm_backward_wide);
  return LayerNorm(std::move(module),
                   {forward, forward_any, forward_wide, backward, backward_any, backward_wide}, columns);
}

const KernelPair<LayerNormParams>& LayerNorm::forward_for(DType type, std::size_t columns) const {
  if (columns > kMostHeldNormColumns) return kernels_.forward_wide;
  return whole_vectors(type, columns) ? kernels_.forward : kernels_.forward_any;
}

absl::Status LayerNorm::forward(Stream& stream, DType type, const LayerNormParams& params) const {
  if (params.rows == 0) return absl::OkStatus();
  return forward_for(type, params.columns)
      .launch(stream, type,
              norm_shape(type, params.rows, params.columns, stream.context().device().multiprocessors),
              params);
}

const KernelPair<LayerNormBackwardParams>& LayerNorm::backward_for(DType type, std::size_t columns) const {
  if (columns > kMostHeldNormColumns) return kernels_.backward_wide;
  return whole_vectors(type, columns) ? kernels_.backward : kernels_.backward_any;
}

absl::Status LayerNorm::backward(Stream& stream, DType type, const LayerNormBackwardParams& params,
                                 const Gradients& gradients) const {
  const LaunchShape shape = norm_backward_shape(type, params.rows, params.columns);
  PL_RETURN_IF_ERROR(backward_for(type, params.columns).launch(stream, type, shape, params));
  return columns_->join(stream, params.partials, gradients.gain, gradients.bias, gradients.accumulate,
                        shape.columns, params.columns);
}

}  // namespace paceline::cuda
