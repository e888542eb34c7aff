// Reverse mode, from the loss to the inputs: each node hands its operands their contributions to the
// gradient. A value's gradient is the sum of its contributions, complete when the value's own turn comes,
// since consumers stand behind producers. The gradient through ReLU and pooling is one operation; a residual
// path's gradient is added by the layer norm's own backward operation.

#include "base/check.h"
#include "runtime/tensor/schedule_maker.h"

namespace paceline::tensor {

// The sum of the contributions so far; -1 where there is none.
TensorId ScheduleMaker::gradient_of(std::size_t node) {
  auto& parts = contributions_[node];
  if (parts.empty()) return -1;
  TensorId sum = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const TensorId next = gradient_like(tensor_[node]);
    schedule_.operations.push_back({OperationKind::kAdd,
                                    nodes_[node].name + " gradient",
                                    {sum, parts[i]},
                                    {next},
                                    nodes_[node].attributes,
                                    false,
                                    false});
    sum = next;
  }
  parts.assign(1, sum);
  return sum;
}

void ScheduleMaker::backward_loss(std::size_t node) {
  if (!is(node, OpKind::kMeanSquaredError)) {
    const TensorId g = gradient_like(operand(node, 0));
    const bool sigmoid = is(node, OpKind::kSigmoidCrossEntropy);
    emit(sigmoid ? OperationKind::kSigmoidCrossEntropyBackward : OperationKind::kSoftmaxCrossEntropyBackward,
         node, extras_[node], {g});
    contribute(source(node, 0), g);
    return;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (!needs_gradient_[source(node, i)]) continue;
    const TensorId g = gradient_like(operand(node, i));
    emit(OperationKind::kMeanSquaredErrorBackward, node, operands(node), {g}).negative = i == 1;
    contribute(source(node, i), g);
  }
}

void ScheduleMaker::backward_product(std::size_t node, OperationKind data, OperationKind weights) {
  const TensorId g = gradient_of(node);
  std::vector<TensorId> outputs;
  for (std::size_t i = 1; i < nodes_[node].inputs.size(); ++i)
    outputs.push_back(parameter_gradient(nodes_[node].inputs[i]));
  emit(weights, node, {operand(node, 0), g}, std::move(outputs));  // first: its exchange can begin
  if (!needs_gradient_[source(node, 0)]) return;
  const TensorId dx = gradient_like(operand(node, 0));
  emit(data, node, {g, operand(node, 1)}, {dx});
  contribute(source(node, 0), dx);
}

void ScheduleMaker::backward_unary(std::size_t node, OperationKind kind, TensorId saved) {
  const TensorId g = gradient_of(node);
  const TensorId dx = gradient_like(operand(node, 0));
  std::vector<TensorId> inputs{g};
  if (saved >= 0) inputs.push_back(saved);
  emit(kind, node, std::move(inputs), {dx});
  contribute(source(node, 0), dx);
}

void ScheduleMaker::backward_pool(std::size_t node) {
  const TensorId g = gradient_of(node);
  const std::size_t x = source(node, 0);
  const TensorId dx = gradient_like(tensor_[x]);
  std::vector<TensorId> inputs{g, extras_[node][0]};
  if (relu_in_pool(x)) {
    // The maximum of ReLUs is positive exactly where the ReLU at its place let the value through.
    inputs.push_back(tensor_[node]);
    relu_done_[x] = true;
  }
  emit(OperationKind::kMaxPool2dBackward, node, std::move(inputs), {dx});
  contribute(x, dx);
}

// A trained input's gradient leaves the arena.
void ScheduleMaker::backward_input(std::size_t node, Place place) {
  const TensorId g = gradient_of(node);
  if (g >= 0)
    emit(OperationKind::kScale, node, {g}, {add({with_rows(nodes_[node].dims), place, 0, 4, false, -1})});
}

void ScheduleMaker::backward_add(std::size_t node) {
  const TensorId g = gradient_of(node);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t x = source(node, i);
    if (!needs_gradient_[x]) continue;
    if (is(x, OpKind::kParameter)) {
      emit(OperationKind::kSumRows, node, {g}, {parameter_gradient(nodes_[node].inputs[i])}).name =
          nodes_[x].name;
    } else {
      contribute(x, g);
    }
  }
}

void ScheduleMaker::backward_multiply(std::size_t node) {
  const TensorId g = gradient_of(node);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!needs_gradient_[source(node, i)]) continue;
    const TensorId dx = gradient_like(operand(node, i));
    emit(OperationKind::kMultiply, node, {g, operand(node, 1 - i)}, {dx});
    contribute(source(node, i), dx);
  }
}

void ScheduleMaker::backward_layer_norm(std::size_t node) {
  const TensorId g = gradient_of(node);
  const std::size_t x = source(node, 0);
  std::vector<TensorId> inputs{g, tensor_[x], operand(node, 1), extras_[node][0], extras_[node][1]};
  const TensorId through = gradient_of(x);
  if (through >= 0) inputs.push_back(through);
  const TensorId dx = gradient_like(tensor_[x]);
  const TensorId dgain = parameter_gradient(nodes_[node].inputs[1]);
  emit(OperationKind::kLayerNormBackward, node, std::move(inputs),
       {dx, dgain, parameter_gradient(nodes_[node].inputs[2])});
  contributions_[x].assign(1, dx);
}

void ScheduleMaker::backward(std::size_t node) {
  if (source_[node] != node) return;
  switch (nodes_[node].kind) {
    case OpKind::kInput:
      return backward_input(node, Place::kInputGradients);
    case OpKind::kOffset:
      return backward_input(node, Place::kOffsetGradients);
    case OpKind::kTokens:
    case OpKind::kParameter:
      return;
    case OpKind::kLinear:
      return backward_product(node, OperationKind::kLinearBackwardData,
                              OperationKind::kLinearBackwardWeights);
    case OpKind::kConv2d:
      return backward_product(node, OperationKind::kConv2dBackwardData,
                              OperationKind::kConv2dBackwardWeights);
    case OpKind::kMaxPool2d:
      return backward_pool(node);
    case OpKind::kRelu:
      if (relu_done_[node]) {
        contribute(source(node, 0), gradient_of(node));
      } else {
        backward_unary(node, OperationKind::kReluBackward, tensor_[node]);
      }
      return;
    case OpKind::kGelu:
      return backward_unary(node, OperationKind::kGeluBackward, operand(node, 0));
    case OpKind::kTanh:
      return backward_unary(node, OperationKind::kTanhBackward, tensor_[node]);
    case OpKind::kSigmoid:
      return backward_unary(node, OperationKind::kSigmoidBackward, tensor_[node]);
    case OpKind::kAdd:
      return backward_add(node);
    case OpKind::kMultiply:
      return backward_multiply(node);
    case OpKind::kScale:
      return backward_unary(node, OperationKind::kScale, -1);
    case OpKind::kReshape:
      return backward_unary(node, OperationKind::kReshape, -1);
    case OpKind::kEmbedding: {
      const TensorId g = gradient_of(node);
      emit(OperationKind::kEmbeddingBackward, node, {operand(node, 0), g},
           {parameter_gradient(nodes_[node].inputs[1])});
      return;
    }
    case OpKind::kLayerNorm:
      return backward_layer_norm(node);
    case OpKind::kCausalSelfAttention: {
      const TensorId g = gradient_of(node);
      const TensorId dx = gradient_like(operand(node, 0));
      emit(OperationKind::kCausalSelfAttentionBackward, node,
           {g, operand(node, 0), extras_[node][0], tensor_[node]}, {dx});
      contribute(source(node, 0), dx);
      return;
    }
    case OpKind::kSoftmaxCrossEntropy:
    case OpKind::kSigmoidCrossEntropy:
    case OpKind::kMeanSquaredError:
      return backward_loss(node);
    case OpKind::kCachedSelfAttention:
    case OpKind::kAtPosition:
    case OpKind::kEmbeddingOfLabel:
    case OpKind::kScores:
      PL_CHECK(false, "scores() are not trained");
  }
}

}  // namespace paceline::tensor
