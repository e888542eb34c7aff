// Losses: the forward operation leaves three doubles (sum over samples, correct labels, labels).
//
// Softmax and cross-entropy keep the logits where they are and write their gradient over them, once: in the
// forward operation of a whole pass, whose scale is known, so that logits are read once and written once and
// the backward operation has nothing to do; else in the backward operation, which reads them once more. For
// 16 * 1,024 tokens of 50,304 classes in bf16 that is 3.3 GB of traffic, or 4.9 GB; a gradient that waits in
// memory to be scaled costs 6.6 GB. The other losses leave the gradient of the sum.

#include <utility>

#include "base/status.h"
#include "runtime/tensor/gpu/operators.h"

namespace paceline::tensor::gpu {

namespace {

using cuda::Stream;

// Rows of logits, one for each label.
struct Logits {
  Logits(const GpuLowering& lowering, const Operation& operation)
      : classes(static_cast<std::uint32_t>(lowering.tensor(operation.inputs[0]).dims.back())),
        rows(static_cast<std::uint32_t>(lowering.elements(operation.inputs[0]) / classes)),
        per_sample(rows / static_cast<std::uint32_t>(lowering.tensor(operation.inputs[0]).dims[0])),
        bytes(lowering.elements(operation.inputs[0]) * dtype_bytes(lowering.type())) {}

  float scale(const RunContext& context) const { return context.scale / static_cast<float>(per_sample); }
  cuda::CrossEntropyParams params(void* logits, const void* labels) const {
    return {.logits = logits,
            .labels = static_cast<const std::int32_t*>(labels),
            .losses = nullptr,
            .hits = nullptr,
            .scale = 1,
            .rows = rows,
            .classes = classes,
            .stride = classes};
  }

  std::uint32_t classes, rows;
  std::uint32_t per_sample;
  std::size_t bytes;
};

// What is worked on in place, where it could not be planned so.
absl::Status bring(Stream& stream, void* to, const void* from, std::size_t bytes) {
  return to == from ? absl::OkStatus() : stream.copy(to, from, bytes);
}

// logits, labels -> result[, logits; their gradient of a whole pass]
Lowered cross_entropy(const GpuLowering& lowering, const Operation& operation) {
  const cuda::CrossEntropy& kernels = lowering.kernels().cross_entropy;
  const DType type = lowering.type();
  const Logits rows(lowering, operation);
  const bool training = operation.outputs.size() > 1;
  const std::size_t hits_at = (rows.rows * sizeof(float) + 63) / 64 * 64;
  const auto body = [=, &kernels](const Addresses& a, const RunContext& context,
                                  Stream& stream) -> absl::Status {
    if (training) PL_RETURN_IF_ERROR(bring(stream, a.outputs[1], a.inputs[0], rows.bytes));
    cuda::CrossEntropyParams params = rows.params(training ? a.outputs[1] : a.inputs[0], a.inputs[1]);
    params.losses = static_cast<float*>(a.scratch);
    params.hits = reinterpret_cast<std::int32_t*>(static_cast<std::byte*>(a.scratch) + hits_at);
    params.scale = rows.scale(context);
    PL_RETURN_IF_ERROR(training && context.whole_pass ? kernels.gradient(stream, type, params)
                                                      : kernels.forward(stream, type, params));
    return kernels.sum(stream, {.losses = params.losses,
                                .hits = params.hits,
                                .result = out<double>(a, 0),
                                .rows = rows.rows,
                                .rows_per_sample = rows.per_sample});
  };
  Operator::Needs needs;
  needs.scratch_bytes = hits_at + rows.rows * sizeof(std::int32_t);
  Lowered lowered{needs, body, {type}, {}};
  if (training) {
    lowered.needs.sharing = Operator::Sharing::kMay;
    lowered.needs.shared_output = 1;
    lowered.outputs = {lowering.type(operation.outputs[0]), type};
  }
  return lowered;
}

// logits, labels -> dlogits; after the forward operation of a whole pass they are there
Lowered cross_entropy_backward(const GpuLowering& lowering, const Operation& operation) {
  const cuda::CrossEntropy& kernels = lowering.kernels().cross_entropy;
  const DType type = lowering.type();
  const Logits rows(lowering, operation);
  const auto body = [=, &kernels](const Addresses& a, const RunContext& context,
                                  Stream& stream) -> absl::Status {
    PL_RETURN_IF_ERROR(bring(stream, a.outputs[0], a.inputs[0], rows.bytes));
    if (context.whole_pass) return absl::OkStatus();
    cuda::CrossEntropyParams params = rows.params(a.outputs[0], a.inputs[1]);
    params.scale = rows.scale(context);
    return kernels.gradient(stream, type, params);
  };
  return {kInPlace, body, {type}, {type}};
}

// dlogits of the sum -> scaled
Lowered sigmoid_cross_entropy_backward(const GpuLowering& lowering, const Operation& operation) {
  const cuda::Elementwise& kernels = lowering.kernels().elementwise;
  const DType type = lowering.type();
  const std::size_t n = lowering.elements(operation.inputs[0]);
  const auto body = [=, &kernels](const Addresses& a, const RunContext& context, Stream& stream) {
    return kernels.scale(stream, type, context.scale, a.inputs[0], a.outputs[0], n);
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

// x -> scores
Lowered scores(const GpuLowering& lowering, const Operation& operation) {
  const std::size_t bytes = lowering.elements(operation.inputs[0]) * sizeof(float);
  const auto body = [=](const Addresses& a, const RunContext&, Stream& stream) {
    return stream.copy(a.outputs[0], a.inputs[0], bytes);
  };
  return {{}, body, {DType::kF32}, {}};
}

}  // namespace

absl::StatusOr<Lowered> make_loss(GpuLowering& lowering, const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kSoftmaxCrossEntropy:
      return cross_entropy(lowering, operation);
    case OperationKind::kSoftmaxCrossEntropyBackward:
      return cross_entropy_backward(lowering, operation);
    case OperationKind::kSigmoidCrossEntropy:
      return sigmoid_cross_entropy(lowering, operation);
    case OperationKind::kSigmoidCrossEntropyBackward:
      return sigmoid_cross_entropy_backward(lowering, operation);
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

}  // namespace paceline::tensor::gpu
