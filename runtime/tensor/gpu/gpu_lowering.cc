#include "runtime/tensor/gpu/gpu_lowering.h"

#include <utility>

#include "base/status.h"
#include "runtime/tensor/gpu/operators.h"

namespace paceline::tensor::gpu {

GpuLowering::GpuLowering(const Schedule& schedule, Precision precision,
                         std::shared_ptr<const cuda::CublasLt> products, const Kernels& kernels,
                         GpuQueue& queue)
    : schedule_(schedule),
      type_(precision == Precision::kBF16 ? DType::kBF16 : DType::kF32),
      products_(std::move(products)),
      kernels_(kernels),
      queue_(queue) {
  for (const Tensor& t : schedule.tensors) {
    const bool own = t.place == Place::kArena || t.place == Place::kCache;
    types_.push_back(own && t.element_bytes == 4 ? type_ : DType::kF32);
  }
}

std::size_t GpuLowering::bytes(TensorId id) const {
  const auto size = static_cast<std::size_t>(tensor(id).element_bytes);
  return elements(id) * (size == 4 ? dtype_bytes(type(id)) : size);
}

absl::StatusOr<std::unique_ptr<Operator>> GpuLowering::lower(const Operation& operation) {
  PL_ASSIGN_OR_RETURN(Lowered made, make(operation));
  return typed(std::move(made), operation);
}

absl::StatusOr<std::unique_ptr<Operator>> GpuLowering::typed(Lowered made, const Operation& operation) {
  const std::vector<DType> inputs = std::move(made.inputs), outputs = std::move(made.outputs);
  auto result = std::make_unique<GpuOperator>(std::move(made), queue_, kernels_.conversion);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorId id = operation.inputs[i];
    if (inputs[i] == type(id)) continue;
    if (tensor(id).place == Place::kWeights && inputs[i] == DType::kBF16) {
      PL_RETURN_IF_ERROR(
          queue_.half_weights().want(context(), schedule_.elements, tensor(id).offset, elements(id)));
      result->half_weight(i, tensor(id).offset);
    } else {
      result->convert_input(i, type(id), inputs[i], elements(id));
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorId id = operation.outputs[i];
    if (outputs[i] != type(id)) result->convert_output(i, outputs[i], type(id), elements(id));
  }
  return result;
}

absl::StatusOr<Lowered> GpuLowering::make(const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kLinear:
    case OperationKind::kLinearBackwardData:
    case OperationKind::kLinearBackwardWeights:
    case OperationKind::kLinearGelu:
    case OperationKind::kLinearGeluBackwardData:
      return make_linear(*this, operation);
    case OperationKind::kConv2d:
    case OperationKind::kConv2dBackwardData:
    case OperationKind::kConv2dBackwardWeights:
      return make_conv(*this, operation);
    case OperationKind::kMaxPool2d:
    case OperationKind::kMaxPool2dBackward:
      return make_pool(*this, operation);
    case OperationKind::kRelu:
    case OperationKind::kGelu:
    case OperationKind::kTanh:
    case OperationKind::kSigmoid:
    case OperationKind::kReluBackward:
    case OperationKind::kTanhBackward:
    case OperationKind::kSigmoidBackward:
    case OperationKind::kGeluBackward:
    case OperationKind::kAdd:
    case OperationKind::kSumRows:
    case OperationKind::kMultiply:
    case OperationKind::kScale:
    case OperationKind::kReshape:
      return make_pointwise(*this, operation);
    case OperationKind::kEmbedding:
    case OperationKind::kEmbeddingBackward:
    case OperationKind::kLayerNorm:
    case OperationKind::kLayerNormBackward:
    case OperationKind::kEmbeddingAdd:
    case OperationKind::kAddLayerNorm:
    case OperationKind::kAtPosition:
      return make_sequence(*this, operation);
    case OperationKind::kCausalSelfAttention:
    case OperationKind::kCausalSelfAttentionBackward:
    case OperationKind::kKeepKeysValues:
    case OperationKind::kCachedSelfAttention:
      return make_attention(*this, operation);
    case OperationKind::kSoftmaxCrossEntropy:
    case OperationKind::kSoftmaxCrossEntropyBackward:
    case OperationKind::kSigmoidCrossEntropy:
    case OperationKind::kSigmoidCrossEntropyBackward:
    case OperationKind::kMeanSquaredError:
    case OperationKind::kMeanSquaredErrorBackward:
    case OperationKind::kScores:
      return make_loss(*this, operation);
  }
  return absl::UnimplementedError("the GPU does not know this operation");
}

}  // namespace paceline::tensor::gpu
