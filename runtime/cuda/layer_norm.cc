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

absl::Status check_columns(std::uint32_t columns) {
  if (columns >= 1 && columns <= kMostNormColumns) return absl::OkStatus();
  return absl::UnimplementedError(
      str_cat("layer norm on a GPU is for 1 to ", kMostNormColumns, " columns, not for ", columns));
}

}  // namespace

LaunchShape norm_shape(DType type, std::size_t rows, std::uint32_t columns, int multiprocessors) {
  const std::size_t warps =
      norm_row_warps(columns, whole_vectors(type, columns) ? kNormLaneColumns : kNormLaneAny);
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
  PL_LOAD_PAIR(const auto backward, module, LayerNormBackwardParams, layer_norm_backward);
  PL_LOAD_PAIR(const auto backward_any, module, LayerNormBackwardParams, layer_norm_backward_any);
  return LayerNorm(std::move(module), {forward, forward_any, backward, backward_any}, columns);
}

absl::Status LayerNorm::forward(Stream& stream, DType type, const LayerNormParams& params) const {
  PL_RETURN_IF_ERROR(check_columns(params.columns));
  if (params.rows == 0) return absl::OkStatus();
  return (whole_vectors(type, params.columns) ? kernels_.forward : kernels_.forward_any)
      .launch(stream, type,
              norm_shape(type, params.rows, params.columns, stream.context().device().multiprocessors),
              params);
}

absl::Status LayerNorm::backward(Stream& stream, DType type, const LayerNormBackwardParams& params,
                                 const Gradients& gradients) const {
  PL_RETURN_IF_ERROR(check_columns(params.columns));
  const LaunchShape shape = norm_backward_shape(type, params.rows, params.columns);
  PL_RETURN_IF_ERROR((whole_vectors(type, params.columns) ? kernels_.backward : kernels_.backward_any)
                         .launch(stream, type, shape, params));
  return columns_->join(stream, params.partials, gradients.gain, gradients.bias, gradients.accumulate,
                        shape.columns, params.columns);
}

}  // namespace paceline::cuda
