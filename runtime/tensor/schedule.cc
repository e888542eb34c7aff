#include "runtime/tensor/schedule.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/status.h"
#include "runtime/tensor/schedule_maker.h"

// Work is done here instead of at run time: what each node needs is known before the first operation is
// emitted, so that neighbours can be joined.

namespace paceline::tensor {

namespace {

// 64 bytes of floats: one cache line, one vector register.
constexpr std::size_t kParameterAlignment = 16;

}  // namespace

std::vector<bool> reached_by_loss(const GraphBuilder& graph) {
  std::vector<bool> reached(graph.nodes().size(), false);
  reached[index(graph.loss())] = true;
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    if (!reached[i]) continue;
    for (const Value input : graph.nodes()[i].inputs) reached[index(input)] = true;
  }
  return reached;
}

void ScheduleMaker::study() {
  const std::size_t n = nodes_.size();
  consumers_.resize(n);
  needs_gradient_.resize(n);
  source_.resize(n);
  parameter_.resize(n);
  tensor_.assign(n, -1);
  extras_.resize(n);
  contributions_.resize(n);
  relu_done_.resize(n);
  gradient_written_.resize(layout_.parameters.size());
  for (std::size_t i = 0; i < n; ++i) {
    needs_gradient_[i] = is(i, OpKind::kParameter) || is(i, OpKind::kOffset) || nodes_[i].attributes.trained;
    for (const Value input : nodes_[i].inputs) {
      if (reached_[i]) consumers_[index(input)].push_back(i);
      if (needs_gradient_[index(input)]) needs_gradient_[i] = true;
    }
    if (is(i, OpKind::kParameter) && reached_[i]) {
      const auto& p = layout_.parameters;
      parameter_[i] = static_cast<std::size_t>(
          std::find_if(p.begin(), p.end(), [&](const Parameter& q) { return q.name == nodes_[i].name; }) -
          p.begin());
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    source_[i] =
        is(i, OpKind::kReshape) && only_linear_consumers(i) ? source_[index(nodes_[i].inputs[0])] : i;
  }
}

// A reshape to one dimension whose consumers are all fully connected: they take the operand as it lies.
bool ScheduleMaker::only_linear_consumers(std::size_t node) const {
  return nodes_[node].dims.size() == 1 &&
         std::all_of(consumers_[node].begin(), consumers_[node].end(), [&](std::size_t c) {
           return is(c, OpKind::kLinear) && index(nodes_[c].inputs[0]) == node;
         });
}

std::vector<TensorId> ScheduleMaker::operands(std::size_t node) const {
  std::vector<TensorId> tensors;
  for (std::size_t i = 0; i < nodes_[node].inputs.size(); ++i) tensors.push_back(operand(node, i));
  return tensors;
}

TensorId ScheduleMaker::parameter_gradient(Value parameter) {
  const std::size_t place = parameter_[index(parameter)];
  const bool adds = gradient_written_[place];
  gradient_written_[place] = true;
  const Parameter& p = layout_.parameters[place];
  return add({p.dims, Place::kGradients, p.offset, 4, adds, -1});
}

Operation& ScheduleMaker::emit(OperationKind kind, std::size_t node, std::vector<TensorId> inputs,
                               std::vector<TensorId> outputs) {
  std::string name = nodes_[node].name;
  if (nodes_[node].inputs.size() > 1 && is(index(nodes_[node].inputs[1]), OpKind::kParameter)) {
    name = nodes_[index(nodes_[node].inputs[1])].name;
    if (name.ends_with(".weight")) name.resize(name.size() - 7);
  }
  schedule_.operations.push_back(
      {kind, std::move(name), std::move(inputs), std::move(outputs), nodes_[node].attributes, false, false});
  return schedule_.operations.back();
}

void ScheduleMaker::find_ready_ranges() {
  const auto& parameters = layout_.parameters;
  std::vector<ReadyRange> ranges(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    ranges[i].begin = parameters[i].offset;
    ranges[i].end = i + 1 < parameters.size() ? parameters[i + 1].offset
                                              : layout_.elements;  // with the padding behind it
  }
  for (std::size_t o = schedule_.forward_count; o < schedule_.operations.size(); ++o) {
    for (const TensorId output : schedule_.operations[o].outputs) {
      const Tensor& t = schedule_.tensors[static_cast<std::size_t>(output)];
      if (t.place != Place::kGradients) continue;
      for (auto& range : ranges) {
        if (range.begin == t.offset) range.operation = o;
      }
    }
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const ReadyRange& a, const ReadyRange& b) { return a.operation < b.operation; });
  for (const ReadyRange& range : ranges) {
    auto& ready = schedule_.ready;
    if (!ready.empty() && ready.back().operation == range.operation && ready.back().end == range.begin) {
      ready.back().end = range.end;
    } else {
      ready.push_back(range);
    }
  }
}

absl::StatusOr<ParameterLayout> lay_out_parameters(const GraphBuilder& graph) {
  PL_RETURN_IF_ERROR(graph.status());
  if (!graph.loss().valid())
    return absl::InvalidArgumentError(
        "the graph has no loss: end it with softmax_cross_entropy, sigmoid_cross_entropy or "
        "mean_squared_error (or with scores, where it only evaluates)");
  const std::vector<bool> reached = reached_by_loss(graph);
  ParameterLayout layout;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.kind != OpKind::kParameter) continue;
    if (!reached[i])
      return absl::InvalidArgumentError(str_cat("parameter ", node.name, " takes no part in the loss"));
    const auto count = static_cast<std::size_t>(element_count(node.dims));
    layout.parameters.push_back({node.name, node.dims, layout.elements, count, node.decay});
    layout.elements += (count + kParameterAlignment - 1) / kParameterAlignment * kParameterAlignment;
    layout.trained_elements += count;
  }
  return layout;
}

bool has_cache(const GraphBuilder& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.attributes.cached > 0; });
}

Schedule make_schedule(const GraphBuilder& graph, const ParameterLayout& layout, std::int64_t rows,
                       bool training) {
  PL_CHECK(graph.status().ok() && graph.loss().valid() && rows >= 1,
           "make_schedule needs a whole graph and rows");
  PL_CHECK(rows == 1 || !has_cache(graph), "a key/value cache is of one sample");
  return ScheduleMaker(graph, layout, rows, training).run();
}

const char* operation_name(OperationKind kind) {
  static constexpr const char* kNames[] = {"linear",
                                           "linear backward data",
                                           "linear backward weights",
                                           "conv2d",
                                           "conv2d backward data",
                                           "conv2d backward weights",
                                           "max_pool2d",
                                           "max_pool2d backward",
                                           "relu",
                                           "gelu",
                                           "tanh",
                                           "sigmoid",
                                           "relu backward",
                                           "tanh backward",
                                           "sigmoid backward",
                                           "gelu backward",
                                           "add",
                                           "sum rows",
                                           "multiply",
                                           "scale",
                                           "reshape",
                                           "embedding",
                                           "embedding backward",
                                           "layer_norm",
                                           "layer_norm backward",
                                           "causal_self_attention",
                                           "causal_self_attention backward",
                                           "keep keys and values",
                                           "cached_self_attention",
                                           "at_position",
                                           "softmax_cross_entropy",
                                           "softmax_cross_entropy backward",
                                           "sigmoid cross entropy",
                                           "sigmoid cross entropy backward",
                                           "mean_squared_error",
                                           "mean_squared_error backward",
                                           "scores",
                                           "embedding, add",
                                           "add, layer_norm",
                                           "linear, gelu",
                                           "linear backward data, gelu backward"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(OperationKind::kLinearGeluBackwardData) + 1);
  return kind <= OperationKind::kLinearGeluBackwardData ? kNames[static_cast<std::size_t>(kind)] : "unknown";
}

}  // namespace paceline::tensor
