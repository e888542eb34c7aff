// Losses: the forward operation leaves three doubles (sum over samples, correct labels, labels), and in
// training the gradient of the sum, in place of the logits where nobody else reads them.

#include <utility>

#include "base/status.h"
#include "runtime/tensor/gpu/operators.h"

namespace paceline::tensor::gpu {

namespace {

using cuda::Stream;

constexpr Operator::Needs kInPlace{0, Operator::Sharing::kMay, 0, 0};

// logits, labels -> result[, dlogits]
Lowered cross_entropy(const GpuLowering& lowering, const Operation& operation) {
  const cuda::CrossEntropy& kernels = lowering.kernels().cross_entropy;
  const DType type = lowering.type();
  const Dims& dims = lowering.tensor(operation.inputs[0]).dims;
  const auto classes = static_cast<std::uint32_t>(dims.back());
  const auto rows = static_cast<std::uint32_t>(lowering.elements(operation.inputs[0]) / classes);
  const std::uint32_t per_sample = rows / static_cast<std::uint32_t>(dims[0]);
  const std::size_t logit_bytes = lowering.elements(operation.inputs[0]) * dtype_bytes(type);
  const bool training = operation.outputs.size() > 1;
  const std::size_t hits_at = (rows * sizeof(float) + 63) / 64 * 64;
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) -> absl::Status {
    void* logits = a.inputs[0];
    if (training && logits != a.outputs[1]) {
      PL_RETURN_IF_ERROR(stream.copy(a.outputs[1], logits, logit_bytes));
      logits = a.outputs[1];
    }
    auto* losses = static_cast<float*>(a.scratch);
    auto* hits = reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(a.scratch) + hits_at);
    const cuda::CrossEntropyParams params{.logits = logits,
                                          .labels = in<std::int32_t>(a, 1),
                                          .losses = losses,
                                          .hits = hits,
                                          .scale = 1,
                                          .rows = rows,
                                          .classes = classes,
                                          .stride = classes};
    PL_RETURN_IF_ERROR(training ? kernels.gradient(stream, type, params)
                                : kernels.forward(stream, type, params));
    return kernels.sum(stream, {.losses = losses,
                                .hits = hits,
                                .result = out<double>(a, 0),
                                .rows = rows,
                                .rows_per_sample = per_sample});
  };
  Operator::Needs needs;
  needs.scratch_bytes = hits_at + rows * sizeof(std::int32_t);
  Lowered lowered{needs, body, {type}, {}};
  if (training) {
    lowered.needs.sharing = Operator::Sharing::kMay;
    lowered.needs.shared_output = 1;
    lowered.outputs = {lowering.type(operation.outputs[0]), type};
  }
  return lowered;
}

// dlogits of the sum -> scaled
Lowered cross_entropy_backward(const GpuLowering& lowering, const Operation& operation) {
  const cuda::Elementwise& kernels = lowering.kernels().elementwise;
  const DType type = lowering.type();
  const Dims& dims = lowering.tensor(operation.inputs[0]).dims;
  const std::size_t n = lowering.elements(operation.inputs[0]);
  const auto per_sample = static_cast<float>(static_cast<std::int64_t>(n) / dims.back() / dims[0]);
  const auto body = [=, &kernels](const Addresses& a, const RunContext& context, Stream& stream) {
    return kernels.scale(stream, type, context.scale / per_sample, a.inputs[0], a.outputs[0], n);
  };
  return {kInPlace, body, {type}, {type}};
}

// logits, labels -> result, scores[, dlogits]
Lowered sigmoid_cross_entropy(const GpuLowering& lowering, const Operation& operation) {
  const cuda::SmallLosses& kernels = lowering.kernels().small_losses;
  const DType type = lowering.type();
  const auto rows = static_cast<std::uint32_t>(lowering.elements(operation.inputs[0]));
  const bool training = operation.outputs.size() > 2;
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.sigmoid_cross_entropy(stream, type,
                                         {.logits = a.inputs[0],
                                          .labels = in<std::int32_t>(a, 1),
                                          .scores = out<float>(a, 1),
                                          .gradient = training ? a.outputs[2] : nullptr,
                                          .result = out<double>(a, 0),
                                          .rows = rows});
  };
  Lowered lowered{{}, body, {type}, {}};
  if (training) {
    lowered.needs = {0, Operator::Sharing::kMay, 0, 2};
    lowered.outputs = {lowering.type(operation.outputs[0]), lowering.type(operation.outputs[1]), type};
  }
  return lowered;
}

// prediction, target -> result
Lowered squared_error(const GpuLowering& lowering, const Operation& operation) {
  const cuda::SmallLosses& kernels = lowering.kernels().small_losses;
  const DType type = lowering.type();
  const std::size_t n = lowering.elements(operation.inputs[0]);
  const auto per_sample =
      static_cast<double>(n) / static_cast<double>(lowering.tensor(operation.inputs[0]).dims[0]);
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.squared_error(stream, type, a.inputs[0], a.inputs[1], n, per_sample,
                                 static_cast<double*>(a.scratch), out<double>(a, 0));
  };
  return {{cuda::SmallLosses::parts(n) * sizeof(double)}, body, {type, type}, {}};
}

// prediction, target -> gradient of one of them
Lowered squared_error_backward(const GpuLowering& lowering, const Operation& operation) {
  const cuda::SmallLosses& kernels = lowering.kernels().small_losses;
  const DType type = lowering.type();
  const std::size_t n = lowering.elements(operation.inputs[0]);
  const auto per_sample =
      static_cast<float>(static_cast<std::int64_t>(n) / lowering.tensor(operation.inputs[0]).dims[0]);
  const float factor = (operation.negative ? -2.0F : 2.0F) / per_sample;
  const auto body = [=, &kernels](const Addresses& a, const RunContext& context, Stream& stream) {
    return kernels.scaled_difference(
        stream, type,
        {.x = a.inputs[0], .y = a.inputs[1], .dx = a.outputs[0], .factor = factor * context.scale, .n = n});
  };
  return {{}, body, {type, type}, {type}};
}

}  // namespace

absl::StatusOr<Lowered> make_loss(GpuLowering& lowering, const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kSoftmaxCrossEntropy:
      return cross_entropy(lowering, operation);
    case OperationKind::kSoftmaxCrossEntropyBackward:
    case OperationKind::kSigmoidCrossEntropyBackward:
      return cross_entropy_backward(lowering, operation);
    case OperationKind::kSigmoidCrossEntropy:
      return sigmoid_cross_entropy(lowering, operation);
    case OperationKind::kMeanSquaredError:
      return squared_error(lowering, operation);
    case OperationKind::kMeanSquaredErrorBackward:
      return squared_error_backward(lowering, operation);
    default:
      return absl::UnimplementedError("not a loss");
  }
}

}  // namespace paceline::tensor::gpu
