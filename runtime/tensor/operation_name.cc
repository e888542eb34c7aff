#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

const char* operation_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::kLinear:
      return "linear";
    case OperationKind::kLinearBackwardData:
      return "linear backward data";
    case OperationKind::kLinearBackwardWeights:
      return "linear backward weights";
    case OperationKind::kConv2d:
      return "conv2d";
    case OperationKind::kConv2dBackwardData:
      return "conv2d backward data";
    case OperationKind::kConv2dBackwardWeights:
      return "conv2d backward weights";
    case OperationKind::kMaxPool2d:
      return "max_pool2d";
    case OperationKind::kMaxPool2dBackward:
      return "max_pool2d backward";
    case OperationKind::kRelu:
      return "relu";
    case OperationKind::kGelu:
      return "gelu";
    case OperationKind::kTanh:
      return "tanh";
    case OperationKind::kSigmoid:
      return "sigmoid";
    case OperationKind::kReluBackward:
      return "relu backward";
    case OperationKind::kTanhBackward:
      return "tanh backward";
    case OperationKind::kSigmoidBackward:
      return "sigmoid backward";
    case OperationKind::kGeluBackward:
      return "gelu backward";
    case OperationKind::kAdd:
      return "add";
    case OperationKind::kSumRows:
      return "sum rows";
    case OperationKind::kMultiply:
      return "multiply";
    case OperationKind::kScale:
      return "scale";
    case OperationKind::kReshape:
      return "reshape";
    case OperationKind::kEmbedding:
      return "embedding";
    case OperationKind::kEmbeddingBackward:
      return "embedding backward";
    case OperationKind::kLayerNorm:
      return "layer_norm";
    case OperationKind::kLayerNormBackward:
      return "layer_norm backward";
    case OperationKind::kCausalSelfAttention:
      return "causal_self_attention";
    case OperationKind::kCausalSelfAttentionBackward:
      return "causal_self_attention backward";
    case OperationKind::kAtPosition:
      return "at_position";
    case OperationKind::kSoftmaxCrossEntropy:
      return "softmax_cross_entropy";
    case OperationKind::kSoftmaxCrossEntropyBackward:
      return "softmax_cross_entropy backward";
    case OperationKind::kSigmoidCrossEntropy:
      return "sigmoid cross entropy";
    case OperationKind::kSigmoidCrossEntropyBackward:
      return "sigmoid cross entropy backward";
    case OperationKind::kMeanSquaredError:
      return "mean_squared_error";
    case OperationKind::kMeanSquaredErrorBackward:
      return "mean_squared_error backward";
    case OperationKind::kScores:
      return "scores";
    case OperationKind::kEmbeddingAdd:
      return "embedding, add";
    case OperationKind::kAddLayerNorm:
      return "add, layer_norm";
    case OperationKind::kLinearGelu:
      return "linear, gelu";
    case OperationKind::kLinearGeluBackwardData:
      return "linear backward data, gelu backward";
  }
  return "unknown";
}

}  // namespace paceline::tensor
