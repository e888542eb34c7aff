#include "runtime/cuda/windows.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/cuda/kernels/images.h"

namespace paceline::cuda {

namespace {

LaunchShape windows_launch(const Stream& stream, std::size_t elements) {
  return strided_shape(elements, kWindowThreads, stream.context().device().multiprocessors);
}

}  // namespace

absl::StatusOr<Windows> Windows::load(std::shared_ptr<const Context> context) {
  PL_ASSIGN_OR_RETURN(Module module, Module::load(std::move(context), windows_image()));
  PL_LOAD_PAIR(const auto columns, module, ColumnsParams, im2col);
  PL_LOAD_PAIR(const auto images, module, ImagesParams, col2im);
  PL_LOAD_PAIR(const auto pool, module, MaxPoolParams, max_pool);
  PL_LOAD_PAIR(const auto pool_backward, module, MaxPoolBackwardParams, max_pool_backward);
  PL_LOAD_PAIR(const auto transpose, module, TransposeParams, transpose);
  return Windows(std::move(module), {columns, images, pool, pool_backward, transpose});
}

absl::Status Windows::columns(Stream& stream, DType type, const ColumnsParams& params) const {
  const std::size_t n = std::size_t{params.shape.positions()} * params.shape.patch();
  return kernels_.columns.launch(stream, type, windows_launch(stream, n), params);
}

absl::Status Windows::images(Stream& stream, DType type, const ImagesParams& params) const {
  return kernels_.images.launch(stream, type, windows_launch(stream, params.shape.inputs()), params);
}

absl::Status Windows::max_pool(Stream& stream, DType type, const MaxPoolParams& params) const {
  const std::size_t n = std::size_t{params.shape.positions()} * params.shape.channels;
  return kernels_.max_pool.launch(stream, type, windows_launch(stream, n), params);
}

absl::Status Windows::max_pool_backward(Stream& stream, DType type,
                                        const MaxPoolBackwardParams& params) const {
  return kernels_.max_pool_backward.launch(stream, type, windows_launch(stream, params.shape.inputs()),
                                           params);
}

absl::Status Windows::transpose(Stream& stream, DType type, const TransposeParams& params,
                                std::uint32_t matrices) const {
  constexpr std::uint32_t kMostMatrices = 65'535;  // blocks in y
  PL_CHECK(matrices <= kMostMatrices, "blocks in y count the matrices");
  if (matrices == 0 || params.rows == 0 || params.columns == 0) return absl::OkStatus();
  const auto tiles = [](std::uint32_t n) { return (n + kTransposeSide - 1) / kTransposeSide; };
  return kernels_.transpose.launch(stream, type,
                                   {.columns = tiles(params.rows) * tiles(params.columns),
                                    .rows = matrices,
                                    .threads = kTransposeSide * kTransposeRows},
                                   params);
}

}  // namespace paceline::cuda
