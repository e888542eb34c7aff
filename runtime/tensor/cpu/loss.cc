// Losses: the forward operation leaves three doubles (sum over samples, correct labels, labels), and in
// training the gradient of the sum.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "runtime/tensor/cpu/elementwise.h"
#include "runtime/tensor/cpu/function_operator.h"
#include "runtime/tensor/cpu/kernels/kernels.h"
#include "runtime/tensor/cpu/operators.h"

namespace paceline::tensor::cpu {

namespace {

using Addresses = Operator::Addresses;

void store(void* result, double loss_sum, double correct, double labels) {
  auto* r = static_cast<double*>(result);
  r[0] = loss_sum;
  r[1] = correct;
  r[2] = labels;
}

// The gradient is made in place of the logits where nobody else reads them.
Lowered cross_entropy(CpuLowering& lowering, const Operation& operation) {
  const Dims& dims = lowering.tensor(operation.inputs[0]).dims;
  const auto classes = static_cast<std::size_t>(dims.back());
  const std::size_t rows = lowering.elements(operation.inputs[0]) / classes;
  const auto per_sample = static_cast<double>(rows) / static_cast<double>(dims[0]);
  const bool training = operation.outputs.size() > 1;
  auto body = [=](const Addresses& a, const RunContext&) {
    const auto* labels = static_cast<const std::int32_t*>(a.inputs[1]);
    for (std::size_t r = 0; r < rows; ++r) {
      PL_CHECK(labels[r] >= 0 && static_cast<std::size_t>(labels[r]) < classes, "a label is in [0, classes)");
    }
    if (training && a.inputs[0] != a.outputs[1])
      std::memcpy(a.outputs[1], a.inputs[0], rows * classes * sizeof(float));
    const LossSum sum = training ? kernels().cross_entropy_gradient(out(a, 1), labels, rows, classes)
                                 : kernels().cross_entropy(in(a, 0), labels, rows, classes);
    store(a.outputs[0], sum.loss / per_sample, static_cast<double>(sum.correct), static_cast<double>(rows));
  };
  Operator::Needs needs;
  if (training) {
    needs = {0, Operator::Sharing::kMay, 0, 1};
    lowering.set_layout(operation.outputs[1], plain_layout(dims));
  }
  return {std::make_unique<FunctionOperator>(needs, body), want_plain(lowering, operation)};
}

Lowered cross_entropy_backward(CpuLowering& lowering, const Operation& operation) {
  const Dims& dims = lowering.tensor(operation.inputs[0]).dims;
  const std::size_t n = lowering.elements(operation.inputs[0]);
  const auto per_sample = static_cast<float>(static_cast<std::int64_t>(n) / dims.back() / dims[0]);
  lowering.set_layout(operation.outputs[0], plain_layout(dims));
  auto body = [=](const Addresses& a, const RunContext& context) {
    scale_to(in(a, 0), context.scale / per_sample, out(a, 0), n);
  };
  return {std::make_unique<FunctionOperator>(Operator::Needs{0, Operator::Sharing::kMay, 0, 0}, body),
          want_plain(lowering, operation)};
}

// Of one row, with logit z and label 0 or 1: max(z, 0) - z label + log(1 + e^-|z|). NaN stays NaN.
double sigmoid_loss(double z, std::int32_t label) {
  return std::max(z, 0.0) - (label == 1 ? z : 0.0) + std::log1p(std::exp(-std::abs(z)));
}

// The gradient is made in place of the logits where nobody else reads them.
Lowered sigmoid_cross_entropy(CpuLowering& lowering, const Operation& operation) {
  const std::size_t rows = lowering.elements(operation.inputs[0]);
  const bool training = operation.outputs.size() > 2;
  auto body = [=](const Addresses& a, const RunContext&) {
    const auto* labels = static_cast<const std::int32_t*>(a.inputs[1]);
    double loss = 0;
    std::int64_t correct = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      PL_CHECK(labels[r] == 0 || labels[r] == 1, "a label is 0 or 1");
      const float z = in(a, 0)[r];
      loss += sigmoid_loss(static_cast<double>(z), labels[r]);
      correct += labels[r] == 1 ? z > 0 : z <= 0;
      out(a, 1)[r] = z;
      if (training) out(a, 2)[r] = 1 / (1 + std::exp(-z)) - static_cast<float>(labels[r]);
    }
    store(a.outputs[0], loss, static_cast<double>(correct), static_cast<double>(rows));
  };
  Operator::Needs needs;
  if (training) {
    needs = {0, Operator::Sharing::kMay, 0, 2};
    lowering.set_layout(operation.outputs[2], plain_layout(lowering.tensor(operation.inputs[0]).dims));
  }
  return {std::make_unique<FunctionOperator>(needs, body), want_plain(lowering, operation)};
}

Lowered squared_error(CpuLowering& lowering, const Operation& operation) {
  const std::size_t n = lowering.elements(operation.inputs[0]);
  const auto per_sample =
      static_cast<double>(n) / static_cast<double>(lowering.tensor(operation.inputs[0]).dims[0]);
  auto body = [=](const Addresses& a, const RunContext&) {
    store(a.outputs[0], squared_difference(in(a, 0), in(a, 1), n) / per_sample, 0, 0);
  };
  return {std::make_unique<FunctionOperator>(Operator::Needs{}, body), want_plain(lowering, operation)};
}

Lowered squared_error_backward(CpuLowering& lowering, const Operation& operation) {
  const std::size_t n = lowering.elements(operation.inputs[0]);
  const auto per_sample =
      static_cast<float>(static_cast<std::int64_t>(n) / lowering.tensor(operation.inputs[0]).dims[0]);
  const float factor = (operation.negative ? -2.0F : 2.0F) / per_sample;
  auto body = [=](const Addresses& a, const RunContext& context) {
    scaled_difference(in(a, 0), in(a, 1), factor * context.scale, out(a, 0), n);
  };
  const Layout layout = lowering.layout(operation.outputs[0]);
  Lowered lowered{std::make_unique<FunctionOperator>(Operator::Needs{}, body), {}};
  lowered.wanted.assign(2, Wanted{false, layout, false});
  return lowered;
}

Lowered scores(CpuLowering& lowering, const Operation& operation) {
  const std::size_t bytes = lowering.elements(operation.inputs[0]) * sizeof(float);
  auto body = [=](const Addresses& a, const RunContext&) { std::memcpy(a.outputs[0], a.inputs[0], bytes); };
  return {std::make_unique<FunctionOperator>(Operator::Needs{}, body), want_plain(lowering, operation)};
}

}  // namespace

absl::StatusOr<Lowered> make_loss(CpuLowering& lowering, const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kSoftmaxCrossEntropy:
      return cross_entropy(lowering, operation);
    case OperationKind::kSigmoidCrossEntropy:
      return sigmoid_cross_entropy(lowering, operation);
    case OperationKind::kSoftmaxCrossEntropyBackward:
    case OperationKind::kSigmoidCrossEntropyBackward:
      return cross_entropy_backward(lowering, operation);
    case OperationKind::kMeanSquaredError:
      return squared_error(lowering, operation);
    case OperationKind::kMeanSquaredErrorBackward:
      return squared_error_backward(lowering, operation);
    case OperationKind::kScores:
      return scores(lowering, operation);
    default:
      return absl::UnimplementedError("not a loss");
  }
}

}  // namespace paceline::tensor::cpu
