// Fully connected layers.

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/matmul.h"
#include "runtime/tensor/gpu/operators.h"

namespace paceline::tensor::gpu {

namespace {

using cuda::Elementwise;
using cuda::MatMul;
using cuda::Stream;

absl::StatusOr<std::shared_ptr<MatMul>> plan(const GpuLowering& lowering, const cuda::Product& product) {
  PL_ASSIGN_OR_RETURN(MatMul matmul, MatMul::plan(lowering.products(), product));
  return std::make_shared<MatMul>(std::move(matmul));
}

// A product with GELU in it, where cuBLASLt has an algorithm for that; else the product alone, to be followed
// by a kernel. Of bf16 only: cuBLASLt does not say how exact its GELU is, and a tanh of 11 bits, as GPUs
// have, would spoil fp32.
absl::StatusOr<std::shared_ptr<MatMul>> plan_gelu(const GpuLowering& lowering, cuda::Product product,
                                                  cuda::Product::Gelu gelu, bool& joined) {
  if (lowering.type() == DType::kBF16) {
    product.gelu = gelu;
    auto planned = plan(lowering, product);
    joined = !absl::IsUnimplemented(planned.status());
    if (joined) return planned;
  }
  joined = false;
  product.gelu = cuda::Product::Gelu::kNone;
  return plan(lowering, product);
}

cuda::Product forward_product(const GpuLowering& lowering, const Operation& operation) {
  const Dims& weight = lowering.tensor(operation.inputs[1]).dims;
  return {.m = static_cast<std::int64_t>(lowering.elements(operation.inputs[0])) / weight[1],
          .n = weight[0],
          .k = weight[1],
          .b_transposed = true,
          .inputs = lowering.type(),
          .output = lowering.type(),
          .bias = operation.inputs.size() > 2};
}

// x, weight[, bias] -> y. A ReLU is done behind the product: cuBLASLt's would turn NaN into zero and hide a
// training that diverged.
absl::StatusOr<Lowered> linear(const GpuLowering& lowering, const Operation& operation) {
  const DType type = lowering.type();
  const bool bias = operation.inputs.size() > 2;
  PL_ASSIGN_OR_RETURN(const auto product, plan(lowering, forward_product(lowering, operation)));
  const Elementwise& kernels = lowering.kernels().elementwise;
  const std::size_t n = lowering.elements(operation.outputs[0]);
  const bool relu = operation.relu;
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) -> absl::Status {
    PL_RETURN_IF_ERROR(product->run(stream, {.a = a.inputs[0],
                                             .b = a.inputs[1],
                                             .c = a.outputs[0],
                                             .bias = bias ? a.inputs[2] : nullptr,
                                             .workspace = a.scratch}));
    if (!relu) return absl::OkStatus();
    return kernels.apply(stream, Elementwise::Function::kRelu, type, a.outputs[0], a.outputs[0], n);
  };
  return Lowered{
      {product->workspace_bytes()}, body, std::vector<DType>(operation.inputs.size(), type), {type}};
}

// x, weight[, bias] -> y[, what GELU was of]
absl::StatusOr<Lowered> linear_gelu(const GpuLowering& lowering, const Operation& operation) {
  using Gelu = cuda::Product::Gelu;
  const DType type = lowering.type();
  const bool bias = operation.inputs.size() > 2, keeps = operation.outputs.size() > 1;
  bool joined = false;
  PL_ASSIGN_OR_RETURN(const auto product, plan_gelu(lowering, forward_product(lowering, operation),
                                                    keeps ? Gelu::kForwardKeeping : Gelu::kForward, joined));
  const Elementwise& kernels = lowering.kernels().elementwise;
  const std::size_t n = lowering.elements(operation.outputs[0]);
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) -> absl::Status {
    void* const y = a.outputs[0];
    void* const kept = keeps ? a.outputs[1] : nullptr;
    void* const sum = keeps && !joined ? kept : y;
    PL_RETURN_IF_ERROR(product->run(stream, {.a = a.inputs[0],
                                             .b = a.inputs[1],
                                             .c = sum,
                                             .bias = bias ? a.inputs[2] : nullptr,
                                             .aux = joined ? kept : nullptr,
                                             .workspace = a.scratch}));
    if (joined) return absl::OkStatus();
    return kernels.apply(stream, Elementwise::Function::kGelu, type, sum, y, n);
  };
  return Lowered{{product->workspace_bytes()},
                 body,
                 std::vector<DType>(operation.inputs.size(), type),
                 std::vector<DType>(operation.outputs.size(), type)};
}

cuda::Product backward_product(const GpuLowering& lowering, const Operation& operation) {
  const Dims& weight = lowering.tensor(operation.inputs[1]).dims;
  return {.m = static_cast<std::int64_t>(lowering.elements(operation.inputs[0])) / weight[0],
          .n = weight[1],
          .k = weight[0],
          .inputs = lowering.type(),
          .output = lowering.type()};
}

// g, weight -> dx
absl::StatusOr<Lowered> backward_data(const GpuLowering& lowering, const Operation& operation) {
  const DType type = lowering.type();
  PL_ASSIGN_OR_RETURN(const auto product, plan(lowering, backward_product(lowering, operation)));
  const auto body = [=](const Addresses& a, const RunContext&, Stream& stream) {
    return product->run(stream,
                        {.a = a.inputs[0], .b = a.inputs[1], .c = a.outputs[0], .workspace = a.scratch});
  };
  return Lowered{{product->workspace_bytes()}, body, {type, type}, {type}};
}

// g, weight, what GELU was of -> dx
absl::StatusOr<Lowered> gelu_backward_data(const GpuLowering& lowering, const Operation& operation) {
  const DType type = lowering.type();
  bool joined = false;
  PL_ASSIGN_OR_RETURN(const auto product, plan_gelu(lowering, backward_product(lowering, operation),
                                                    cuda::Product::Gelu::kBackward, joined));
  const Elementwise& kernels = lowering.kernels().elementwise;
  const std::size_t n = lowering.elements(operation.outputs[0]);
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) -> absl::Status {
    void* const dx = a.outputs[0];
    PL_RETURN_IF_ERROR(product->run(stream, {.a = a.inputs[0],
                                             .b = a.inputs[1],
                                             .c = dx,
                                             .aux = joined ? a.inputs[2] : nullptr,
                                             .workspace = a.scratch}));
    if (joined) return absl::OkStatus();
    return kernels.backward(stream, Elementwise::Function::kGelu, type, a.inputs[2], dx, dx, n);
  };
  return Lowered{{product->workspace_bytes()}, body, {type, type, type}, {type}};
}

// x, g -> dweight[, dbias]
absl::StatusOr<Lowered> backward_weights(const GpuLowering& lowering, const Operation& operation) {
  const DType type = lowering.type();
  const Tensor& dweight = lowering.tensor(operation.outputs[0]);
  const auto elements = static_cast<std::int64_t>(lowering.elements(operation.inputs[0]));
  const std::int64_t out_size = dweight.dims[0], in_size = dweight.dims[1], positions = elements / in_size;
  PL_ASSIGN_OR_RETURN(const auto product, plan(lowering, {.m = out_size,
                                                          .n = in_size,
                                                          .k = positions,
                                                          .a_transposed = true,
                                                          .inputs = type,
                                                          .output = DType::kF32}));
  const cuda::Columns& columns = *lowering.kernels().columns;
  const auto rows = static_cast<std::size_t>(positions), width = static_cast<std::size_t>(out_size);
  const bool bias = operation.outputs.size() > 1;
  const bool adds = dweight.adds, bias_adds = bias && lowering.tensor(operation.outputs[1]).adds;
  const auto body = [=, &columns](const Addresses& a, const RunContext& context,
                                  Stream& stream) -> absl::Status {
    PL_RETURN_IF_ERROR(product->run(stream, {.a = a.inputs[1],
                                             .b = a.inputs[0],
                                             .c = a.outputs[0],
                                             .workspace = a.scratch,
                                             .accumulate = adds || context.accumulate}));
    if (!bias) return absl::OkStatus();
    return columns.sums(stream, type, a.inputs[1], out<float>(a, 1), bias_adds || context.accumulate,
                        static_cast<float*>(a.scratch), rows, width);
  };
  const std::size_t sums = bias ? cuda::Columns::scratch_elements(rows, width) * sizeof(float) : 0;
  return Lowered{{std::max(product->workspace_bytes(), sums)}, body, {type, type}, {}};
}

}  // namespace

absl::StatusOr<Lowered> make_linear(GpuLowering& lowering, const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kLinear:
      return linear(lowering, operation);
    case OperationKind::kLinearBackwardData:
      return backward_data(lowering, operation);
    case OperationKind::kLinearBackwardWeights:
      return backward_weights(lowering, operation);
    case OperationKind::kLinearGelu:
      return linear_gelu(lowering, operation);
    case OperationKind::kLinearGeluBackwardData:
      return gelu_backward_data(lowering, operation);
    default:
      return absl::UnimplementedError("not a fully connected layer");
  }
}

}  // namespace paceline::tensor::gpu
