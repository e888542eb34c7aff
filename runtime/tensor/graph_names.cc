#include "runtime/tensor/graph.h"

namespace paceline::tensor {

const char* op_name(OpKind kind) {
  switch (kind) {
    case OpKind::kInput:
      return "input";
    case OpKind::kTokens:
      return "tokens";
    case OpKind::kOffset:
      return "offset";
    case OpKind::kParameter:
      return "parameter";
    case OpKind::kLinear:
      return "linear";
    case OpKind::kConv2d:
      return "conv2d";
    case OpKind::kMaxPool2d:
      return "max_pool2d";
    case OpKind::kRelu:
      return "relu";
    case OpKind::kGelu:
      return "gelu";
    case OpKind::kTanh:
      return "tanh";
    case OpKind::kSigmoid:
      return "sigmoid";
    case OpKind::kAdd:
      return "add";
    case OpKind::kMultiply:
      return "multiply";
    case OpKind::kScale:
      return "scale";
    case OpKind::kReshape:
      return "reshape";
    case OpKind::kEmbedding:
      return "embedding";
    case OpKind::kLayerNorm:
      return "layer_norm";
    case OpKind::kCausalSelfAttention:
      return "causal_self_attention";
    case OpKind::kAtPosition:
      return "at_position";
    case OpKind::kSoftmaxCrossEntropy:
      return "softmax_cross_entropy";
    case OpKind::kSigmoidCrossEntropy:
      return "sigmoid_cross_entropy";
    case OpKind::kMeanSquaredError:
      return "mean_squared_error";
    case OpKind::kScores:
      return "scores";
  }
  return "unknown";
}

}  // namespace paceline::tensor
