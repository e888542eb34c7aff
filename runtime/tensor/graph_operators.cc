// Which shapes each operator takes, and the shape of its result.

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/tensor/graph.h"
#include "runtime/tensor/graph_dims.h"

namespace paceline::tensor {

namespace {

// {B, ...} and {T, ...} with B > T.
bool has_more_positions(const Dims& b, const Dims& a) {
  return b.size() == a.size() && b[0] > a[0] && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

}  // namespace

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
  if (!fault_of(to).empty() || element_count(to) != element_count(dims(x))) {
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

Value GraphBuilder::causal_self_attention(Value qkv, std::int64_t heads, std::int64_t positions) {
  if (usable("causal_self_attention", {qkv}) && dims(qkv)[0] > positions) {
    return refuse(
        "causal_self_attention",
        str_cat("a cache of ", positions, " positions does not hold those of ", dims_text(dims(qkv))));
  }
  const Value y = causal_self_attention(qkv, heads);
  if (y.valid()) nodes_.back().attributes.cached = positions;
  scored_alone_ = "attention with a key/value cache";
  return y;
}

Value GraphBuilder::cached_self_attention(Value qkv, std::int64_t heads, std::int64_t positions) {
  if (!usable("cached_self_attention", {qkv})) return {};
  const Dims& in = dims(qkv);
  if (is_parameter(qkv) || in.size() != 2 || in[0] != 1 || heads < 1 || in[1] % (3 * heads) != 0 ||
      positions < 1) {
    return refuse("cached_self_attention",
                  str_cat("needs {1, 3 * width} with a width that ", heads, " heads divide, not ",
                          dims_text(in), ", and a cache of at least 1 position, not ", positions));
  }
  scored_alone_ = "attention with a key/value cache";
  Attributes attributes;
  attributes.heads = heads;
  attributes.cached = positions;
  return append(OpKind::kCachedSelfAttention, {qkv}, {1, in[1] / 3}, attributes);
}

Value GraphBuilder::embedding_of_label(Value table) {
  if (!usable("embedding_of_label", {table})) return {};
  if (!is_parameter(table) || dims(table).size() != 2) {
    return refuse("embedding_of_label",
                  str_cat("the table must be a parameter {positions, width}, not ", dims_text(dims(table))));
  }
  scored_alone_ = "embedding_of_label";
  return append(OpKind::kEmbeddingOfLabel, {table}, {1, dims(table)[1]});
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

}  // namespace paceline::tensor
