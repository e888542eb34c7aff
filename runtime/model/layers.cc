#include "runtime/model/layers.h"

#include "base/status.h"

namespace paceline::model {

using tensor::GraphBuilder;
using tensor::Init;
using tensor::Value;

Value activate(GraphBuilder& graph, v1::Activation activation, Value x) {
  switch (activation) {
    case v1::ACTIVATION_GELU:
      return graph.gelu(x);
    case v1::ACTIVATION_TANH:
      return graph.tanh(x);
    default:
      return graph.relu(x);
  }
}

void classify(GraphBuilder& graph, Value x, const std::vector<std::int64_t>& hidden,
              v1::Activation activation, std::int64_t classes) {
  Value h = graph.flatten(x);
  for (std::size_t i = 0; i < hidden.size() && graph.status().ok(); ++i) {
    const std::int64_t in = graph.dims(h).back();
    const Init init = activation == v1::ACTIVATION_TANH ? Init::xavier(in, hidden[i]) : Init::he(in);
    h = activate(graph, activation, graph.dense(str_cat("fc", i + 1), h, hidden[i], init));
  }
  if (!graph.status().ok()) return;
  graph.softmax_cross_entropy(graph.dense("output", h, classes, Init::xavier(graph.dims(h).back(), classes)));
}

absl::Status check_classification(const data::SampleShape& sample, std::int64_t classes) {
  if (sample.kind != data::InputKind::kFloats) {
    return absl::InvalidArgumentError(
        "the data's samples are tokens; this model takes arrays of numbers (use type: gpt)");
  }
  if (sample.labels != 1) {
    return absl::InvalidArgumentError(
        str_cat("the data has ", sample.labels, " labels for each sample; this model takes one"));
  }
  if (sample.classes > classes) {
    const std::int64_t largest = sample.classes - 1;
    const std::string found =
        str_cat("the data's labels are from ", sample.smallest_label, " to ", largest,
                "; with model.classes ", classes, " they must be from 0 to ", classes - 1);
    return absl::InvalidArgumentError(sample.smallest_label > 0
                                          ? str_cat(found, ": subtract ", sample.smallest_label,
                                                    " from each, or set model.classes to ", sample.classes,
                                                    " (and leave ", sample.smallest_label, " of them unused)")
                                          : str_cat(found, ": set model.classes to ", sample.classes));
  }
  return absl::OkStatus();
}

}  // namespace paceline::model
