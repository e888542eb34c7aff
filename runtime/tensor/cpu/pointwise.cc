// Operators that work on single elements: any layout does, as long as all operands have the same. Forward,
// the first operand's is taken; backward, the value's own.

#include <cstring>

#include "runtime/tensor/cpu/dnnl_operator.h"
#include "runtime/tensor/cpu/elementwise.h"
#include "runtime/tensor/cpu/function_operator.h"
#include "runtime/tensor/cpu/kernels/kernels.h"
#include "runtime/tensor/cpu/operators.h"

namespace paceline::tensor::cpu {

namespace {

using Addresses = Operator::Addresses;

// The same layout for every operand and the result.
Lowered pointwise(CpuLowering& lowering, const Operation& operation, FunctionOperator::Body body) {
  const TensorId result = operation.outputs[0];
  const bool has_layout = lowering.tensor(result).like >= 0;
  const Layout layout = has_layout ? lowering.layout(result) : lowering.layout(operation.inputs[0]);
  lowering.set_layout(result, layout);
  Lowered lowered{std::make_unique<FunctionOperator>(kInPlace, std::move(body)), {}};
  lowered.wanted.assign(operation.inputs.size(), Wanted{false, layout, false});
  return lowered;
}

using Unary = void (*)(const float*, float*, std::size_t);
using Binary = void (*)(const float*, const float*, float*, std::size_t);

Lowered unary(CpuLowering& lowering, const Operation& operation, Unary function) {
  const std::size_t n = lowering.elements(operation.outputs[0]);
  return pointwise(lowering, operation,
                   [=](const Addresses& a, const RunContext&) { function(in(a, 0), out(a, 0), n); });
}

// `first` and `second`: the function's operands, by number.
Lowered binary(CpuLowering& lowering, const Operation& operation, Binary function, std::size_t first,
               std::size_t second) {
  const std::size_t n = lowering.elements(operation.outputs[0]);
  return pointwise(lowering, operation, [=](const Addresses& a, const RunContext&) {
    function(in(a, first), in(a, second), out(a, 0), n);
  });
}

// One sample's parameter, or the first positions of one, added to every sample.
Lowered add_to_samples(CpuLowering& lowering, const Operation& operation) {
  const auto rows = static_cast<std::size_t>(lowering.tensor(operation.inputs[0]).dims[0]);
  const std::size_t n = lowering.elements(operation.inputs[0]) / rows;
  lowering.set_layout(operation.outputs[0], plain_layout(lowering.tensor(operation.outputs[0]).dims));
  auto body = [=](const Addresses& a, const RunContext&) {
    for (std::size_t r = 0; r < rows; ++r) kernels().add(in(a, 0) + r * n, in(a, 1), out(a, 0) + r * n, n);
  };
  return {std::make_unique<FunctionOperator>(kInPlace, body), want_plain(lowering, operation)};
}

Lowered sum_rows(CpuLowering& lowering, const Operation& operation) {
  const std::size_t n = lowering.elements(operation.outputs[0]);
  const std::size_t rows = lowering.elements(operation.inputs[0]) / n;
  const bool adds = lowering.tensor(operation.outputs[0]).adds;
  auto body = [=](const Addresses& a, const RunContext& context) {
    kernels().column_sums(in(a, 0), out(a, 0), adds || context.accumulate, rows, n);
  };
  return {std::make_unique<FunctionOperator>(Operator::Needs{}, body), want_plain(lowering, operation)};
}

// Row-major on both sides it is the same memory, else a copy.
Lowered reshape(CpuLowering& lowering, const Operation& operation) {
  const TensorId x = operation.inputs[0];
  const TensorId y = operation.outputs[0];
  const Layout plain = plain_layout(lowering.tensor(y).dims);
  const bool has_layout = lowering.tensor(y).like >= 0;
  if (has_layout && lowering.layout(y) != plain) {
    const dnnl::reorder::primitive_desc description(
        lowering.context().engine, plain, lowering.context().engine, lowering.layout(y), user_scratchpad());
    auto op = std::make_unique<DnnlOperator>(lowering.context(), dnnl::reorder(description));
    op->input(DNNL_ARG_FROM, 0, plain);
    op->output(DNNL_ARG_TO, 0, lowering.layout(y));
    op->scratchpad(description.scratchpad_desc());
    return {std::move(op), want_plain(lowering, operation)};
  }
  lowering.set_layout(y, plain);
  const std::size_t bytes = lowering.elements(y) * sizeof(float);
  Operator::Needs needs;
  if (lowering.tensor(x).place == Place::kArena && is_plain(lowering.layout(x)))
    needs.sharing = Operator::Sharing::kAlways;
  auto body = [=](const Addresses& a, const RunContext&) {
    if (a.inputs[0] != a.outputs[0]) std::memcpy(a.outputs[0], a.inputs[0], bytes);
  };
  return {std::make_unique<FunctionOperator>(needs, body), want_plain(lowering, operation)};
}

}  // namespace

std::vector<Wanted> want_plain(const CpuLowering& lowering, const Operation& operation) {
  std::vector<Wanted> wanted;
  for (const TensorId id : operation.inputs) {
    const bool floats = lowering.tensor(id).place == Place::kArena && lowering.tensor(id).element_bytes == 4;
    wanted.push_back(floats ? Wanted{false, plain_layout(lowering.tensor(id).dims), false} : Wanted{});
  }
  return wanted;
}

absl::StatusOr<Lowered> make_pointwise(CpuLowering& lowering, const Operation& operation) {
  const Kernels& k = kernels();
  const std::size_t n = operation.outputs.empty() ? 0 : lowering.elements(operation.outputs[0]);
  switch (operation.kind) {
    case OperationKind::kRelu:
      return unary(lowering, operation, k.relu);
    case OperationKind::kGelu:
      return unary(lowering, operation, k.gelu);
    case OperationKind::kTanh:
      return unary(lowering, operation, k.tanh);
    case OperationKind::kSigmoid:
      return unary(lowering, operation, sigmoid);
    case OperationKind::kReluBackward:
      return binary(lowering, operation, k.relu_backward, 1, 0);
    case OperationKind::kTanhBackward:
      return binary(lowering, operation, k.tanh_backward, 1, 0);
    case OperationKind::kSigmoidBackward:
      return binary(lowering, operation, sigmoid_backward, 1, 0);
    case OperationKind::kGeluBackward:
      return binary(lowering, operation, k.gelu_backward, 1, 0);
    case OperationKind::kMultiply:
      return binary(lowering, operation, multiply, 0, 1);
    case OperationKind::kAdd:
      if (lowering.tensor(operation.inputs[1]).place == Place::kWeights)
        return add_to_samples(lowering, operation);
      return binary(lowering, operation, k.add, 0, 1);
    case OperationKind::kScale: {
      const float factor = operation.attributes.factor;
      return pointwise(lowering, operation, [=](const Addresses& a, const RunContext&) {
        scale_to(in(a, 0), factor, out(a, 0), n);
      });
    }
    case OperationKind::kSumRows:
      return sum_rows(lowering, operation);
    case OperationKind::kReshape:
      return reshape(lowering, operation);
    default:
      return absl::UnimplementedError("not a pointwise operation");
  }
}

}  // namespace paceline::tensor::cpu
