// What a graph ends with: a loss, or scores.

#include <utility>

#include "base/status.h"
#include "runtime/tensor/graph.h"

namespace paceline::tensor {

void GraphBuilder::set_loss(OpKind kind, std::vector<Value> inputs) {
  if (scored_alone_ != nullptr && kind != OpKind::kScores) {
    refuse(op_name(kind), str_cat("the graph has an ", scored_alone_,
                                  ", which nothing is trained through: end it with scores()"));
    return;
  }
  if (loss_.valid()) {
    refuse(op_name(kind), "the graph has a loss already");
    return;
  }
  loss_ = append(kind, std::move(inputs), {1});
}

void GraphBuilder::softmax_cross_entropy(Value logits) {
  if (!usable("softmax_cross_entropy", {logits})) return;
  const Dims& in = dims(logits);
  if (is_parameter(logits) || in.size() > 2) {
    refuse("softmax_cross_entropy", str_cat("needs {classes} or {positions, classes}, not ", dims_text(in)));
    return;
  }
  set_loss(OpKind::kSoftmaxCrossEntropy, {logits});
}

void GraphBuilder::sigmoid_cross_entropy(Value logit) {
  if (!usable("sigmoid_cross_entropy", {logit})) return;
  if (is_parameter(logit) || dims(logit) != Dims{1}) {
    refuse("sigmoid_cross_entropy",
           str_cat("needs one computed number for each sample, {1}, not ", dims_text(dims(logit))));
    return;
  }
  set_loss(OpKind::kSigmoidCrossEntropy, {logit});
}

void GraphBuilder::mean_squared_error(Value prediction, Value target) {
  if (!usable("mean_squared_error", {prediction, target})) return;
  if (is_parameter(prediction) || is_parameter(target) || dims(prediction) != dims(target)) {
    refuse("mean_squared_error", str_cat("needs two computed values of equal dims, not ",
                                         dims_text(dims(prediction)), " and ", dims_text(dims(target))));
    return;
  }
  set_loss(OpKind::kMeanSquaredError, {prediction, target});
}

void GraphBuilder::scores(Value x) {
  if (!usable("scores", {x})) return;
  if (is_parameter(x) || nodes_[static_cast<std::size_t>(x.id)].kind == OpKind::kTokens) {
    refuse("scores", "x must be computed from the input, not a parameter or tokens");
    return;
  }
  set_loss(OpKind::kScores, {x});
}

}  // namespace paceline::tensor
