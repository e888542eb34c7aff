#include "runtime/tensor/graph.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace paceline::tensor {

std::string dims_text(const Dims& dims) {
  std::string text = "{";
  for (std::size_t i = 0; i < dims.size(); ++i) text += str_cat(i == 0 ? "" : ", ", dims[i]);
  return text + "}";
}

std::int64_t element_count(const Dims& dims) {
  std::int64_t n = 1;
  for (const auto d : dims) n *= d;
  return n;
}

Init Init::he(std::int64_t fan_in) {
  return normal(std::sqrt(2.0F / static_cast<float>(fan_in)));
}

Init Init::xavier(std::int64_t fan_in, std::int64_t fan_out) {
  return uniform(std::sqrt(6.0F / static_cast<float>(fan_in + fan_out)));
}

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

namespace {

// Bounds of one array: far beyond any model that fits a machine, and far from overflow.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;
constexpr std::size_t kMaxNodes = 100'000;

// {B, ...} and {T, ...} with B > T.
bool has_more_positions(const Dims& b, const Dims& a) {
  return b.size() == a.size() && b[0] > a[0] && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

bool sane(const Dims& dims) {
  if (dims.empty()) return false;
  std::int64_t n = 1;
  for (const auto d : dims) {
    if (d < 1 || d > kMaxElements / n) return false;
    n *= d;
  }
  return true;
}

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
  if (!sane(dims))
    return refuse("input", str_cat("dims ", dims_text(dims), " must be positive and not empty"));
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
  if (!sane({count})) return refuse("tokens", str_cat("count ", count, " must be positive"));
  return append(OpKind::kTokens, {}, {count});
}

Value GraphBuilder::parameter(const std::string& name, const Dims& dims, Init init, bool decay) {
  if (!status_.ok()) return {};
  if (name.empty()) return refuse("parameter", "the name is empty");
  if (!sane(dims)) return refuse(name, str_cat("dims ", dims_text(dims), " must be positive and not empty"));
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

Value GraphBuilder::linear(Value x, Value weight, Value bias) {
  if (!usable("linear", {x, weight, bias.valid() ? bias : x})) return {};
  const Dims& in = dims(x);
  const Dims& w = dims(weight);
  if (is_parameter(x)) return refuse("linear", "x is a parameter");
  if (!is_parameter(weight) || w.size() != 2 || w[1] != in.back()) {
    return refuse("linear", str_cat("x ", dims_text(in), " needs a weight parameter {out, ", in.back(),
                                    "}, not ", dims_text(w)));
  }
  std::vector<Value> inputs{x, weight};
  if (bias.valid()) {
    if (!is_parameter(bias) || dims(bias) != Dims{w[0]}) {
      return refuse("linear", str_cat("weight ", dims_text(w), " needs a bias parameter {", w[0], "}, not ",
                                      dims_text(dims(bias))));
    }
    inputs.push_back(bias);
  }
  Dims out = in;
  out.back() = w[0];
  return append(OpKind::kLinear, std::move(inputs), std::move(out));
}

Value GraphBuilder::conv2d(Value x, Value weight, Value bias, std::int64_t stride, std::int64_t padding) {
  if (!usable("conv2d", {x, weight, bias.valid() ? bias : x})) return {};
  const Dims& in = dims(x);
  const Dims& w = dims(weight);
  if (is_parameter(x) || in.size() != 3)
    return refuse("conv2d", str_cat("x must be {channels, height, width}, not ", dims_text(in)));
  if (!is_parameter(weight) || w.size() != 4 || w[1] != in[0]) {
    return refuse("conv2d", str_cat("x ", dims_text(in), " needs a weight parameter {filters, ", in[0],
                                    ", height, width}, not ", dims_text(w)));
  }
  if (stride < 1 || padding < 0 || padding >= w[2] || padding >= w[3]) {
    return refuse("conv2d", str_cat("stride ", stride, " must be >= 1 and padding ", padding,
                                    " in [0, size of the filter ", dims_text(w), ")"));
  }
  if (in[1] + 2 * padding < w[2] || in[2] + 2 * padding < w[3]) {
    return refuse("conv2d", str_cat("filter ", dims_text(w), " is larger than x ", dims_text(in),
                                    " with padding ", padding));
  }
  std::vector<Value> inputs{x, weight};
  if (bias.valid()) {
    if (!is_parameter(bias) || dims(bias) != Dims{w[0]}) {
      return refuse("conv2d", str_cat("weight ", dims_text(w), " needs a bias parameter {", w[0], "}, not ",
                                      dims_text(dims(bias))));
    }
    inputs.push_back(bias);
  }
  Attributes attributes;
  attributes.stride = stride;
  attributes.padding = padding;
  const Dims out{w[0], (in[1] + 2 * padding - w[2]) / stride + 1, (in[2] + 2 * padding - w[3]) / stride + 1};
  return append(OpKind::kConv2d, std::move(inputs), out, attributes);
}

Value GraphBuilder::max_pool2d(Value x, std::int64_t window, std::int64_t stride) {
  if (!usable("max_pool2d", {x})) return {};
  const Dims& in = dims(x);
  if (is_parameter(x) || in.size() != 3)
    return refuse("max_pool2d", str_cat("x must be {channels, height, width}, not ", dims_text(in)));
  // The place of a maximum is kept in one byte.
  if (window < 1 || window > 15 || stride < 1 || window > in[1] || window > in[2]) {
    return refuse("max_pool2d", str_cat("window ", window, " with stride ", stride, " does not fit x ",
                                        dims_text(in), " (window in 1..15)"));
  }
  Attributes attributes;
  attributes.window = window;
  attributes.stride = stride;
  return append(OpKind::kMaxPool2d, {x},
                {in[0], (in[1] - window) / stride + 1, (in[2] - window) / stride + 1}, attributes);
}

Value GraphBuilder::elementwise(OpKind kind, Value x) {
  if (!usable(op_name(kind), {x})) return {};
  if (is_parameter(x) || nodes_[static_cast<std::size_t>(x.id)].kind == OpKind::kTokens) {
    return refuse(op_name(kind), "x must be computed from the input, not a parameter or tokens");
  }
  return append(kind, {x}, dims(x));
}

Value GraphBuilder::relu(Value x) {
  return elementwise(OpKind::kRelu, x);
}
Value GraphBuilder::gelu(Value x) {
  return elementwise(OpKind::kGelu, x);
}
Value GraphBuilder::tanh(Value x) {
  return elementwise(OpKind::kTanh, x);
}
Value GraphBuilder::sigmoid(Value x) {
  return elementwise(OpKind::kSigmoid, x);
}

Value GraphBuilder::scale(Value x, float factor) {
  const Value y = elementwise(OpKind::kScale, x);
  if (y.valid()) nodes_.back().attributes.factor = factor;
  return y;
}

Value GraphBuilder::add(Value a, Value b) {
  if (!usable("add", {a, b})) return {};
  if (is_parameter(a)) return refuse("add", "the first operand is a parameter; give it second");
  const bool first_positions = is_parameter(b) && has_more_positions(dims(b), dims(a));
  if (first_positions) scored_alone_ = "add of a parameter's first positions";
  if (dims(a) != dims(b) && !first_positions)
    return refuse("add", str_cat("operands have dims ", dims_text(dims(a)), " and ", dims_text(dims(b))));
  return append(OpKind::kAdd, {a, b}, dims(a));
}

Value GraphBuilder::multiply(Value a, Value b) {
  if (!usable("multiply", {a, b})) return {};
  if (is_parameter(a) || is_parameter(b)) return refuse("multiply", "an operand is a parameter");
  if (dims(a) != dims(b))
    return refuse("multiply",
                  str_cat("operands have dims ", dims_text(dims(a)), " and ", dims_text(dims(b))));
  return append(OpKind::kMultiply, {a, b}, dims(a));
}

Value GraphBuilder::reshape(Value x, const Dims& to) {
  if (!usable("reshape", {x})) return {};
  if (is_parameter(x) || nodes_[static_cast<std::size_t>(x.id)].kind == OpKind::kTokens)
    return refuse("reshape", "x is a parameter or tokens");
  if (!sane(to) || element_count(to) != element_count(dims(x))) {
    return refuse("reshape", str_cat(dims_text(dims(x)), " has other elements than ", dims_text(to)));
  }
  return to == dims(x) ? x : append(OpKind::kReshape, {x}, to);
}

Value GraphBuilder::flatten(Value x) {
  if (!usable("flatten", {x})) return {};
  return reshape(x, {element_count(dims(x))});
}

Value GraphBuilder::embedding(Value tokens, Value table) {
  if (!usable("embedding", {tokens, table})) return {};
  if (nodes_[static_cast<std::size_t>(tokens.id)].kind != OpKind::kTokens)
    return refuse("embedding", "the first operand must be tokens()");
  if (!is_parameter(table) || dims(table).size() != 2) {
    return refuse("embedding",
                  str_cat("the table must be a parameter {vocabulary, width}, not ", dims_text(dims(table))));
  }
  return append(OpKind::kEmbedding, {tokens, table}, {dims(tokens)[0], dims(table)[1]});
}

Value GraphBuilder::layer_norm(Value x, Value gain, Value bias, float epsilon) {
  if (!usable("layer_norm", {x, gain, bias})) return {};
  const Dims width{dims(x).back()};
  if (is_parameter(x)) return refuse("layer_norm", "x is a parameter");
  if (!is_parameter(gain) || !is_parameter(bias) || dims(gain) != width || dims(bias) != width) {
    return refuse("layer_norm",
                  str_cat("x ", dims_text(dims(x)), " needs gain and bias parameters ", dims_text(width),
                          ", not ", dims_text(dims(gain)), " and ", dims_text(dims(bias))));
  }
  if (!(epsilon > 0)) return refuse("layer_norm", "epsilon must be positive");
  Attributes attributes;
  attributes.epsilon = epsilon;
  return append(OpKind::kLayerNorm, {x, gain, bias}, dims(x), attributes);
}

Value GraphBuilder::causal_self_attention(Value qkv, std::int64_t heads) {
  if (!usable("causal_self_attention", {qkv})) return {};
  const Dims& in = dims(qkv);
  if (is_parameter(qkv) || in.size() != 2 || heads < 1 || in[1] % (3 * heads) != 0) {
    return refuse("causal_self_attention", str_cat("needs {positions, 3 * width} with a width that ", heads,
                                                   " heads divide, not ", dims_text(in)));
  }
  Attributes attributes;
  attributes.heads = heads;
  return append(OpKind::kCausalSelfAttention, {qkv}, {in[0], in[1] / 3}, attributes);
}

Value GraphBuilder::at_position(Value x) {
  if (!usable("at_position", {x})) return {};
  const Dims& in = dims(x);
  if (is_parameter(x) || in.size() != 2)
    return refuse("at_position", str_cat("needs {positions, width}, not ", dims_text(in)));
  for (const Node& node : nodes_) {
    if (node.kind == OpKind::kAtPosition)
      return refuse("at_position", "a sample has one label, which another one takes");
  }
  scored_alone_ = "at_position";
  return append(OpKind::kAtPosition, {x}, {in[1]});
}

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

Value GraphBuilder::dense(const std::string& name, Value x, std::int64_t out) {
  if (!usable(name, {x})) return {};
  return dense(name, x, out, Init::he(dims(x).back()));
}

Value GraphBuilder::dense(const std::string& name, Value x, std::int64_t out, Init init) {
  if (!usable(name, {x})) return {};
  const Value weight = parameter(name + ".weight", {out, dims(x).back()}, init);
  const Value bias = parameter(name + ".bias", {out}, Init::constant(0), false);
  if (!status_.ok()) return {};
  return linear(x, weight, bias);
}

Value GraphBuilder::conv(const std::string& name, Value x, std::int64_t filters, std::int64_t kernel,
                         std::int64_t stride, std::int64_t padding) {
  if (!usable(name, {x})) return {};
  const Dims& in = dims(x);
  if (in.size() != 3)
    return refuse(name, str_cat("conv2d: x must be {channels, height, width}, not ", dims_text(in)));
  const Value weight =
      parameter(name + ".weight", {filters, in[0], kernel, kernel}, Init::he(in[0] * kernel * kernel));
  const Value bias = parameter(name + ".bias", {filters}, Init::constant(0), false);
  if (!status_.ok()) return {};
  return conv2d(x, weight, bias, stride, padding);
}

}  // namespace paceline::tensor
