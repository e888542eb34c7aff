// The builder itself: nodes, errors that stick, inputs and parameters.

#include "runtime/tensor/graph.h"

#include <initializer_list>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/tensor/graph_dims.h"

namespace paceline::tensor {

namespace {
constexpr std::size_t kMaxNodes = 100'000;
}  // namespace

void GraphBuilder::fail(absl::Status status) {
  PL_CHECK(!status.ok(), "fail() needs an error");
  if (status_.ok()) status_ = std::move(status);
}

Value GraphBuilder::refuse(std::string_view op, std::string_view why) {
  fail(absl::InvalidArgumentError(str_cat(op, ": ", why)));
  return {};
}

const Dims& GraphBuilder::dims(Value value) const {
  static const Dims kNone;
  if (value.id < 0 || static_cast<std::size_t>(value.id) >= nodes_.size()) return kNone;
  return nodes_[static_cast<std::size_t>(value.id)].dims;
}

bool GraphBuilder::is_parameter(Value value) const {
  return nodes_[static_cast<std::size_t>(value.id)].kind == OpKind::kParameter;
}

bool GraphBuilder::usable(std::string_view op, std::initializer_list<Value> values) {
  if (!status_.ok()) return false;
  for (const Value v : values) {
    if (v.id < 0 || static_cast<std::size_t>(v.id) >= nodes_.size()) {
      refuse(op, "an operand is not a value of this graph");
      return false;
    }
  }
  return true;
}

Value GraphBuilder::append(OpKind kind, std::vector<Value> inputs, Dims dims, Attributes attributes) {
  if (!status_.ok()) return {};
  if (nodes_.size() >= kMaxNodes)
    return refuse(op_name(kind), str_cat("the graph has more than ", kMaxNodes, " nodes"));
  const Value value{static_cast<std::int32_t>(nodes_.size())};
  nodes_.push_back(Node{
      kind, str_cat(op_name(kind), "#", value.id), std::move(inputs), std::move(dims), attributes, {}, true});
  return value;
}

Value GraphBuilder::input(const Dims& dims) {
  return input_of(dims, false);
}

Value GraphBuilder::trained_input(const Dims& dims) {
  return input_of(dims, true);
}

Value GraphBuilder::offset() {
  if (!status_.ok()) return {};
  for (const auto& node : nodes_) {
    if (node.kind == OpKind::kOffset) return refuse("offset", "the graph has an offset already");
  }
  return append(OpKind::kOffset, {}, {1});
}

Value GraphBuilder::input_of(const Dims& dims, bool trained) {
  if (!status_.ok()) return {};
  for (const auto& node : nodes_) {
    if (node.kind == OpKind::kInput || node.kind == OpKind::kTokens)
      return refuse("input", "the graph has an input already");
  }
  if (const std::string fault = fault_of(dims); !fault.empty()) return refuse("input", fault);
  Attributes attributes;
  attributes.trained = trained;
  return append(OpKind::kInput, {}, dims, attributes);
}

Value GraphBuilder::tokens(std::int64_t count) {
  if (!status_.ok()) return {};
  for (const auto& node : nodes_) {
    if (node.kind == OpKind::kInput || node.kind == OpKind::kTokens)
      return refuse("tokens", "the graph has an input already");
  }
  if (const std::string fault = fault_of({count}); !fault.empty()) return refuse("tokens", fault);
  return append(OpKind::kTokens, {}, {count});
}

Value GraphBuilder::parameter(const std::string& name, const Dims& dims, Init init, bool decay) {
  if (!status_.ok()) return {};
  if (name.empty()) return refuse("parameter", "the name is empty");
  if (const std::string fault = fault_of(dims); !fault.empty()) return refuse(name, fault);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].kind != OpKind::kParameter || nodes_[i].name != name) continue;
    if (nodes_[i].dims == dims) return Value{static_cast<std::int32_t>(i)};
    return refuse(name, str_cat("parameter was made with dims ", dims_text(nodes_[i].dims),
                                " and is asked for with ", dims_text(dims)));
  }
  const Value value = append(OpKind::kParameter, {}, dims);
  if (value.valid()) {
    nodes_.back().name = name;
    nodes_.back().init = init;
    nodes_.back().decay = decay;
  }
  return value;
}

const char* op_name(OpKind kind) {
  static constexpr const char* kNames[] = {"input",
                                           "tokens",
                                           "offset",
                                           "parameter",
                                           "linear",
                                           "conv2d",
                                           "max_pool2d",
                                           "relu",
                                           "gelu",
                                           "tanh",
                                           "sigmoid",
                                           "add",
                                           "multiply",
                                           "scale",
                                           "reshape",
                                           "embedding",
                                           "layer_norm",
                                           "causal_self_attention",
                                           "cached_self_attention",
                                           "at_position",
                                           "embedding_of_label",
                                           "softmax_cross_entropy",
                                           "sigmoid_cross_entropy",
                                           "mean_squared_error",
                                           "scores"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(OpKind::kScores) + 1);
  return kind <= OpKind::kScores ? kNames[static_cast<std::size_t>(kind)] : "unknown";
}

}  // namespace paceline::tensor
