// Max pooling.

#include <utility>

#include "base/status.h"
#include "runtime/tensor/gpu/operators.h"

namespace paceline::tensor::gpu {

namespace {

using cuda::Stream;

absl::StatusOr<cuda::WindowShape> window_shape(const Dims& x, const Dims& y, const Attributes& attributes) {
  const auto u32 = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  if (element_count(x) >= std::int64_t{1} << 32)
    return absl::UnimplementedError(
        "the GPU's pooling takes fewer than 2^32 elements: make the batch smaller");
  return cuda::WindowShape{.images = u32(x[0]),
                           .channels = u32(x[1]),
                           .height = u32(x[2]),
                           .width = u32(x[3]),
                           .out_height = u32(y[2]),
                           .out_width = u32(y[3]),
                           .window_height = u32(attributes.window),
                           .window_width = u32(attributes.window),
                           .stride = u32(attributes.stride)};
}

// x -> y[, places]
absl::StatusOr<Lowered> pool_forward(const GpuLowering& lowering, const Operation& operation) {
  const cuda::Windows& kernels = lowering.kernels().windows;
  const DType type = lowering.type();
  PL_ASSIGN_OR_RETURN(const cuda::WindowShape shape,
                      window_shape(lowering.tensor(operation.inputs[0]).dims,
                                   lowering.tensor(operation.outputs[0]).dims, operation.attributes));
  const bool training = operation.outputs.size() > 1, relu = operation.relu;
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.max_pool(stream, type,
                            {.x = a.inputs[0],
                             .y = a.outputs[0],
                             .places = training ? out<std::uint8_t>(a, 1) : nullptr,
                             .shape = shape,
                             .relu = relu});
  };
  return Lowered{{}, body, {type}, {type}};
}

// g, places[, y] -> dx
absl::StatusOr<Lowered> pool_backward(const GpuLowering& lowering, const Operation& operation) {
  const cuda::Windows& kernels = lowering.kernels().windows;
  const DType type = lowering.type();
  PL_ASSIGN_OR_RETURN(const cuda::WindowShape shape,
                      window_shape(lowering.tensor(operation.outputs[0]).dims,
                                   lowering.tensor(operation.inputs[0]).dims, operation.attributes));
  const bool masked = operation.inputs.size() > 2;
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.max_pool_backward(stream, type,
                                     {.dy = a.inputs[0],
                                      .places = in<std::uint8_t>(a, 1),
                                      .y = masked ? a.inputs[2] : nullptr,
                                      .dx = a.outputs[0],
                                      .shape = shape});
  };
  std::vector<DType> inputs = {type, lowering.type(operation.inputs[1])};
  if (masked) inputs.push_back(type);
  return Lowered{{}, body, std::move(inputs), {type}};
}

}  // namespace

absl::StatusOr<Lowered> make_pool(GpuLowering& lowering, const Operation& operation) {
  return operation.kind == OperationKind::kMaxPool2d ? pool_forward(lowering, operation)
                                                     : pool_backward(lowering, operation);
}

}  // namespace paceline::tensor::gpu
