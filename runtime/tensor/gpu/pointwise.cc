// Operators that work on single elements, and sums over the rows.

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/tensor/gpu/operators.h"

namespace paceline::tensor::gpu {

namespace {

using cuda::Elementwise;
using cuda::Stream;

// All operands and the result in the program's type.
Lowered pointwise(const GpuLowering& lowering, const Operation& operation, Lowered::Body body) {
  return {kInPlace, std::move(body), std::vector<DType>(operation.inputs.size(), lowering.type()),
          std::vector<DType>(operation.outputs.size(), lowering.type())};
}

Lowered apply(const GpuLowering& lowering, const Operation& operation, Elementwise::Function function) {
  const Elementwise& kernels = lowering.kernels().elementwise;
  const DType type = lowering.type();
  const std::size_t n = lowering.elements(operation.outputs[0]);
  return pointwise(lowering, operation, [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.apply(stream, function, type, a.inputs[0], a.outputs[0], n);
  });
}

// g, saved -> dx
Lowered function_backward(const GpuLowering& lowering, const Operation& operation,
                          Elementwise::Function function) {
  const Elementwise& kernels = lowering.kernels().elementwise;
  const DType type = lowering.type();
  const std::size_t n = lowering.elements(operation.outputs[0]);
  return pointwise(lowering, operation, [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.backward(stream, function, type, a.inputs[1], a.inputs[0], a.outputs[0], n);
  });
}

using Binary = absl::Status (Elementwise::*)(Stream&, DType, const void*, const void*, void*,
                                             std::size_t) const;

Lowered binary(const GpuLowering& lowering, const Operation& operation, Binary function) {
  const Elementwise& kernels = lowering.kernels().elementwise;
  const DType type = lowering.type();
  const std::size_t n = lowering.elements(operation.outputs[0]);
  return pointwise(lowering, operation, [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return (kernels.*function)(stream, type, a.inputs[0], a.inputs[1], a.outputs[0], n);
  });
}

// One sample's parameter, or the first positions of one, added to every sample; in pieces that 32 bits count.
Lowered add_to_samples(const GpuLowering& lowering, const Operation& operation) {
  const Elementwise& kernels = lowering.kernels().elementwise;
  const DType type = lowering.type();
  const std::size_t n = lowering.elements(operation.outputs[0]),
                    period = n / static_cast<std::size_t>(lowering.tensor(operation.outputs[0]).dims[0]);
  const std::size_t piece = std::max<std::size_t>(cuda::kMostPeriodic / period, 1) * period;
  return pointwise(lowering, operation, [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    for (std::size_t at = 0; at < n; at += piece) {
      const std::size_t bytes = at * dtype_bytes(type);
      PL_RETURN_IF_ERROR(kernels.add_row(stream, type, in<std::byte>(a, 0) + bytes, a.inputs[1],
                                         out<std::byte>(a, 0) + bytes, std::min(piece, n - at), period));
    }
    return absl::OkStatus();
  });
}

Lowered scale(const GpuLowering& lowering, const Operation& operation) {
  const Elementwise& kernels = lowering.kernels().elementwise;
  const DType type = lowering.type();
  const std::size_t n = lowering.elements(operation.outputs[0]);
  const float factor = operation.attributes.factor;
  return pointwise(lowering, operation, [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.scale(stream, type, factor, a.inputs[0], a.outputs[0], n);
  });
}

Lowered sum_rows(const GpuLowering& lowering, const Operation& operation) {
  const cuda::Columns& kernels = *lowering.kernels().columns;
  const DType type = lowering.type();
  const std::size_t columns = lowering.elements(operation.outputs[0]);
  const std::size_t rows = lowering.elements(operation.inputs[0]) / columns;
  const bool adds = lowering.tensor(operation.outputs[0]).adds;
  const auto body = [=, &kernels](const Addresses& a, const RunContext& context, Stream& stream) {
    return kernels.sums(stream, type, a.inputs[0], out<float>(a, 0), adds || context.accumulate,
                        static_cast<float*>(a.scratch), rows, columns);
  };
  return {{cuda::Columns::scratch_elements(rows, columns) * sizeof(float)}, body, {type}, {}};
}

// The same memory, or a copy of what comes from outside.
Lowered reshape(const GpuLowering& lowering, const Operation& operation) {
  const std::size_t bytes = lowering.elements(operation.outputs[0]) * dtype_bytes(lowering.type());
  Operator::Needs needs;
  if (lowering.tensor(operation.inputs[0]).place == Place::kArena) needs.sharing = Operator::Sharing::kAlways;
  const auto body = [=](const Addresses& a, const RunContext&, Stream& stream) {
    return a.inputs[0] == a.outputs[0] ? absl::OkStatus() : stream.copy(a.outputs[0], a.inputs[0], bytes);
  };
  return {needs, body, {lowering.type()}, {lowering.type()}};
}

}  // namespace

absl::StatusOr<Lowered> make_pointwise(GpuLowering& lowering, const Operation& operation) {
  using Function = Elementwise::Function;
  switch (operation.kind) {
    case OperationKind::kRelu:
      return apply(lowering, operation, Function::kRelu);
    case OperationKind::kGelu:
      return apply(lowering, operation, Function::kGelu);
    case OperationKind::kTanh:
      return apply(lowering, operation, Function::kTanh);
    case OperationKind::kSigmoid:
      return apply(lowering, operation, Function::kSigmoid);
    case OperationKind::kReluBackward:
      return function_backward(lowering, operation, Function::kRelu);
    case OperationKind::kGeluBackward:
      return function_backward(lowering, operation, Function::kGelu);
    case OperationKind::kTanhBackward:
      return function_backward(lowering, operation, Function::kTanh);
    case OperationKind::kSigmoidBackward:
      return function_backward(lowering, operation, Function::kSigmoid);
    case OperationKind::kMultiply:
      return binary(lowering, operation, &Elementwise::multiply);
    case OperationKind::kAdd:
      if (lowering.tensor(operation.inputs[1]).place == Place::kWeights)
        return add_to_samples(lowering, operation);
      return binary(lowering, operation, &Elementwise::add);
    case OperationKind::kScale:
      return scale(lowering, operation);
    case OperationKind::kSumRows:
      return sum_rows(lowering, operation);
    case OperationKind::kReshape:
      return reshape(lowering, operation);
    default:
      return absl::UnimplementedError("not a pointwise operation");
  }
}

}  // namespace paceline::tensor::gpu
