#pragma once

// A model's computation as data: values and the operators between them. A model (runtime/model/model.h; a
// user's own: docs/custom-model.md) describes itself to a GraphBuilder; compile() (compiler.h) derives the
// backward pass, plans memory and makes a Program.
//
//   auto x = graph.input(sample.dims);                    // {1, 28, 28}
//   auto h = graph.relu(graph.dense("fc1", graph.flatten(x), 128));
//   graph.softmax_cross_entropy(graph.dense("fc2", h, 10));
//   return graph.status();
//
// Shapes are those of one sample; the rows of a batch are a leading dimension that is not written. All
// arithmetic values are floats, row-major. Errors: the first one sticks (INVALID_ARGUMENT, with the
// operator's name and the shapes that do not fit). Every later call does nothing and returns an invalid
// Value, so that a model may check once, at its end. Not thread-safe; a plain value.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace paceline::tensor {

using Dims = std::vector<std::int64_t>;
std::string dims_text(const Dims& dims);  // "{1, 28, 28}"
std::int64_t element_count(const Dims& dims);

// One result of an operator, an input, or a parameter. A handle: valid in the builder that made it.
struct Value {
  std::int32_t id = -1;
  bool valid() const { return id >= 0; }
};

// How a parameter begins. Random values depend on the program's seed and the parameter's name only.
struct Init {
  enum class Kind : std::uint8_t { kConstant, kNormal, kUniform };
  Kind kind = Kind::kConstant;
  float value = 0;  // the constant, the standard deviation, or the bound: uniform in [-value, value)
  static constexpr Init constant(float value) { return {Kind::kConstant, value}; }
  static constexpr Init normal(float deviation) { return {Kind::kNormal, deviation}; }
  static constexpr Init uniform(float bound) { return {Kind::kUniform, bound}; }
  static Init he(std::int64_t fan_in);  // He 2015, normal: for ReLU and GELU
  static Init xavier(std::int64_t fan_in,
                     std::int64_t fan_out);  // Glorot 2010, uniform: for tanh and the last layer
};

enum class OpKind : std::uint8_t {
  kInput,
  kTokens,
  kOffset,
  kParameter,
  kLinear,
  kConv2d,
  kMaxPool2d,
  kRelu,
  kGelu,
  kTanh,
  kSigmoid,
  kAdd,
  kMultiply,
  kScale,
  kReshape,
  kEmbedding,
  kLayerNorm,
  kCausalSelfAttention,
  kCachedSelfAttention,
  kAtPosition,
  kEmbeddingOfLabel,
  kSoftmaxCrossEntropy,
  kSigmoidCrossEntropy,
  kMeanSquaredError,
  kScores,
};
const char* op_name(OpKind kind);

// Attributes of a node; each operator reads its own.
struct Attributes {
  std::int64_t stride = 1;   // conv2d, max_pool2d
  std::int64_t padding = 0;  // conv2d: zeros on each side
  std::int64_t window = 2;   // max_pool2d
  std::int64_t heads = 1;    // both attentions
  std::int64_t cached = 0;   // both attentions: positions of the key/value cache; 0: there is none
  float epsilon = 1e-5F;     // layer_norm
  float factor = 1;          // scale
  bool trained = false;      // input
};

struct Node {
  OpKind kind;
  std::string name;           // parameters: theirs; others: "relu3", for messages
  std::vector<Value> inputs;  // linear and conv2d: x, weight[, bias]
  Dims dims;                  // of one sample; parameters: the whole
  Attributes attributes;
  Init init;          // parameters
  bool decay = true;  // parameters
};

class GraphBuilder {
 public:
  // ---- what comes from the data set: at most one of input and tokens, once ----
  Value input(const Dims& dims);
  Value tokens(std::int64_t count);  // {count} token numbers; only embedding() takes them

  // ---- what comes from elsewhere, and whose gradient goes back there (rows of tables on servers) ----
  // As input(); a training program leaves the gradient in batch().input_gradients.
  Value trained_input(const Dims& dims);
  // {1}: a number for each sample, to be added to its logit; once. Gradient: batch().offset_gradients.
  Value offset();

  // A trained array. A second call with the same name and dims returns the same parameter; other dims are an
  // error. Weight decay is for matrices and filters, not for biases and norms.
  Value parameter(const std::string& name, const Dims& dims, Init init, bool decay = true);

  // ---- operators ----
  // {..., in} x weight {out, in} [+ bias {out}] -> {..., out}. An embedding's table may be the weight (a tied
  // head).
  Value linear(Value x, Value weight, Value bias = {});
  // {channels, height, width} x weight {filters, channels, kh, kw} [+ bias {filters}].
  Value conv2d(Value x, Value weight, Value bias, std::int64_t stride, std::int64_t padding);
  // {channels, height, width}; a rest at the right and at the bottom is left out. The first of equal maxima
  // takes the gradient.
  Value max_pool2d(Value x, std::int64_t window, std::int64_t stride);
  Value relu(Value x);
  Value gelu(Value x);  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  Value tanh(Value x);
  Value sigmoid(Value x);
  // Equal dims; b may be a parameter of one sample's dims: it is added to every sample. In a graph that ends
  // with scores(), also one of more positions (its first dimension): the first of them are added.
  Value add(Value a, Value b);
  Value multiply(Value a, Value b);  // element by element, equal dims
  Value scale(Value x, float factor);
  Value reshape(Value x, const Dims& dims);
  Value flatten(Value x);  // {all elements}
  // {T} tokens, table {vocabulary, width} -> {T, width}.
  Value embedding(Value tokens, Value table);
  // Over the last dimension (Ba 2016); gain and bias {width}.
  Value layer_norm(Value x, Value gain, Value bias, float epsilon = 1e-5F);
  // {T, 3 * width}: queries, keys, values beside each other -> {T, width}; position t sees positions <= t;
  // scores times 1 / sqrt(width / heads).
  Value causal_self_attention(Value qkv, std::int64_t heads);
  // The same with a key/value cache of `positions` >= T, as cached_self_attention() reads it: keys and values
  // stay there as those of positions 0 to T - 1. The graph ends with scores().
  Value causal_self_attention(Value qkv, std::int64_t heads, std::int64_t positions);
  // {1, 3 * width} -> {1, width}: of the one position p that the sample's label says, in [0, positions). Its
  // key and value stay in the cache, and it sees those of positions 0 to p. The n-th attention of a graph has
  // the n-th part of the program's cache (KeyValueCache, compiler.h). The graph ends with scores().
  Value cached_self_attention(Value qkv, std::int64_t heads, std::int64_t positions);
  // {T, width} -> {width}: of each sample the position that its one label says, in [0, T). The graph ends
  // with scores().
  Value at_position(Value x);
  // A parameter {positions, width} -> {1, width}: the row that the sample's label says. The graph ends with
  // scores().
  Value embedding_of_label(Value table);

  // ---- the loss: exactly one. Of a sample: the mean over its label positions, or over its elements. ----
  // {classes} with one label, or {T, classes} with T labels, each in [0, classes).
  void softmax_cross_entropy(Value logits);
  // {1}, with one label, 0 or 1: -log of the probability sigmoid(logit) of 1, or of what is left to 0. The
  // logits stay in batch().scores. Right is a logit above 0 for 1, else for 0.
  void sigmoid_cross_entropy(Value logit);
  void mean_squared_error(Value prediction, Value target);
  // In place of a loss, for programs that only evaluate: these numbers of each sample stay in
  // batch().scores. Labels are what at_position() takes; a ForwardResult is zeros.
  void scores(Value x);

  // ---- layers: parameters `name`.weight and `name`.bias, and the operator ----
  Value dense(const std::string& name, Value x, std::int64_t out);  // He
  Value dense(const std::string& name, Value x, std::int64_t out, Init init);
  Value conv(const std::string& name, Value x, std::int64_t filters, std::int64_t kernel, std::int64_t stride,
             std::int64_t padding);  // He

  // Makes a status of the model's own stick, as the operators' errors do.
  void fail(absl::Status status);
  const absl::Status& status() const { return status_; }
  const Dims& dims(Value value) const;                       // empty for an invalid value
  const std::vector<Node>& nodes() const { return nodes_; }  // in an order in which operands come first
  Value loss() const { return loss_; }                       // or scores()

 private:
  bool usable(std::string_view op, std::initializer_list<Value> values);
  Value input_of(const Dims& dims, bool trained);
  Value append(OpKind kind, std::vector<Value> inputs, Dims dims, Attributes attributes = {});
  Value elementwise(OpKind kind, Value x);
  bool is_parameter(Value value) const;
  Value refuse(std::string_view op, std::string_view why);
  void set_loss(OpKind kind, std::vector<Value> inputs);

  std::vector<Node> nodes_;
  Value loss_;
  const char* scored_alone_ = nullptr;  // an operator that no loss follows; null: there is none
  absl::Status status_;
};

}  // namespace paceline::tensor
