// From the inputs to the loss. A ReLU behind a product joins it; a ReLU before a pooling is done behind it; a
// reshape before a fully connected layer vanishes.

#include "runtime/tensor/schedule_maker.h"

namespace paceline::tensor {

void ScheduleMaker::forward_product(std::size_t node, OperationKind kind) {
  const auto& consumers = consumers_[node];
  tensor_[node] = arena(with_rows(nodes_[node].dims));
  auto& operation = emit(kind, node, operands(node), {tensor_[node]});
  operation.relu = consumers.size() == 1 && is(consumers[0], OpKind::kRelu) && !relu_in_pool(consumers[0]);
}

void ScheduleMaker::forward_with_extras(std::size_t node, OperationKind kind, std::vector<TensorId> extras) {
  tensor_[node] = arena(with_rows(nodes_[node].dims));
  extras_[node] = extras;
  std::vector<TensorId> outputs{tensor_[node]};
  outputs.insert(outputs.end(), extras.begin(), extras.end());
  emit(kind, node, operands(node), std::move(outputs));
}

TensorId ScheduleMaker::cache(std::size_t node) {
  constexpr std::size_t kAligned = 32;  // elements: 64 bytes, of bf16 too
  const Dims dims{nodes_[node].attributes.cached, 2 * nodes_[node].dims[1]};
  const std::size_t offset = schedule_.cache_elements;
  schedule_.cache_elements +=
      (static_cast<std::size_t>(element_count(dims)) + kAligned - 1) / kAligned * kAligned;
  return add({dims, Place::kCache, offset, 4, false, -1});
}

void ScheduleMaker::forward_attention(std::size_t node) {
  const Attributes& attributes = nodes_[node].attributes;
  if (is(node, OpKind::kCachedSelfAttention)) {
    tensor_[node] = arena(with_rows(nodes_[node].dims));
    emit(OperationKind::kCachedSelfAttention, node, {operand(node, 0), label_tensor(1)},
         {tensor_[node], cache(node)});
    return;
  }
  forward_with_extras(node, OperationKind::kCausalSelfAttention,
                      {arena({rows_, attributes.heads, nodes_[node].dims[0], 2})});
  if (attributes.cached > 0) emit(OperationKind::kKeepKeysValues, node, {operand(node, 0)}, {cache(node)});
}

void ScheduleMaker::forward_loss(std::size_t node) {
  const Tensor result{{3}, Place::kResult, 0, 8, false, -1};
  if (is(node, OpKind::kMeanSquaredError)) {
    emit(OperationKind::kMeanSquaredError, node, operands(node), {add(result)});
    return;
  }
  if (is(node, OpKind::kScores)) {
    emit(OperationKind::kScores, node, operands(node),
         {add({with_rows(nodes_[index(nodes_[node].inputs[0])].dims), Place::kScores, 0, 4, false, -1})});
    return;
  }
  const Dims& logits = nodes_[source(node, 0)].dims;
  const TensorId labels = label_tensor(logits.size() == 1 ? 1 : logits[0]);
  std::vector<TensorId> outputs{add(result)};
  const bool sigmoid = is(node, OpKind::kSigmoidCrossEntropy);
  if (sigmoid) outputs.push_back(add({{rows_, 1}, Place::kScores, 0, 4, false, -1}));
  if (schedule_.training) {
    extras_[node] = {gradient_like(operand(node, 0))};
    outputs.push_back(extras_[node][0]);
    if (!sigmoid) extras_[node].push_back(labels);
  }
  emit(sigmoid ? OperationKind::kSigmoidCrossEntropy : OperationKind::kSoftmaxCrossEntropy, node,
       {operand(node, 0), labels}, std::move(outputs));
}

void ScheduleMaker::forward(std::size_t node) {
  if (source_[node] != node) return;
  const Dims& dims = nodes_[node].dims;
  const std::int64_t positions = rows_ * element_count(dims) / dims.back();
  switch (nodes_[node].kind) {
    case OpKind::kInput:
      tensor_[node] = add({with_rows(dims), Place::kInputs, 0, 4, false, -1});
      return;
    case OpKind::kTokens:
      tensor_[node] = add({with_rows(dims), Place::kTokens, 0, 4, false, -1});
      return;
    case OpKind::kOffset:
      tensor_[node] = add({with_rows(dims), Place::kOffsets, 0, 4, false, -1});
      return;
    case OpKind::kParameter:
      tensor_[node] = add({dims, Place::kWeights, layout_.parameters[parameter_[node]].offset, 4, false, -1});
      return;
    case OpKind::kLinear:
      return forward_product(node, OperationKind::kLinear);
    case OpKind::kConv2d:
      return forward_product(node, OperationKind::kConv2d);
    case OpKind::kMaxPool2d: {
      std::vector<TensorId> places;
      if (schedule_.training) places = {arena(with_rows(dims), 1)};
      forward_with_extras(node, OperationKind::kMaxPool2d, std::move(places));
      schedule_.operations.back().relu = relu_in_pool(source(node, 0));
      return;
    }
    case OpKind::kRelu: {
      const std::size_t x = source(node, 0);
      const bool joined = (is(x, OpKind::kLinear) || is(x, OpKind::kConv2d)) && sole_consumer(x, node);
      if (joined || relu_in_pool(node)) {
        tensor_[node] = tensor_[x];
      } else {
        forward_unary(node, OperationKind::kRelu);
      }
      return;
    }
    case OpKind::kGelu:
      return forward_unary(node, OperationKind::kGelu);
    case OpKind::kTanh:
      return forward_unary(node, OperationKind::kTanh);
    case OpKind::kSigmoid:
      return forward_unary(node, OperationKind::kSigmoid);
    case OpKind::kAdd:
      return forward_unary(node, OperationKind::kAdd);
    case OpKind::kMultiply:
      return forward_unary(node, OperationKind::kMultiply);
    case OpKind::kScale:
      return forward_unary(node, OperationKind::kScale);
    case OpKind::kReshape:
      return forward_unary(node, OperationKind::kReshape);
    case OpKind::kEmbedding:
      return forward_unary(node, OperationKind::kEmbedding);
    case OpKind::kLayerNorm: {
      const TensorId means = arena({positions});
      return forward_with_extras(node, OperationKind::kLayerNorm, {means, arena({positions})});
    }
    case OpKind::kCausalSelfAttention:
    case OpKind::kCachedSelfAttention:
      return forward_attention(node);
    case OpKind::kAtPosition:
      tensor_[node] = arena(with_rows(dims));
      emit(OperationKind::kAtPosition, node, {operand(node, 0), label_tensor(1)}, {tensor_[node]});
      return;
    case OpKind::kEmbeddingOfLabel:
      tensor_[node] = arena(with_rows(dims));
      emit(OperationKind::kEmbedding, node, {label_tensor(1), operand(node, 0)}, {tensor_[node]});
      return;
    case OpKind::kSoftmaxCrossEntropy:
    case OpKind::kSigmoidCrossEntropy:
    case OpKind::kMeanSquaredError:
    case OpKind::kScores:
      return forward_loss(node);
  }
}

}  // namespace paceline::tensor
