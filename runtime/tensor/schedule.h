#pragma once

// A training step as a list: what the compiler hands to a device. Pure data.
//
// A schedule is made for one row count: every tensor has its full dims, the rows first. Operations stand in
// the order of execution, forward first; the backward pass is operations like the others, derived from the
// graph by reverse mode.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/tensor/graph.h"
#include "runtime/tensor/program.h"

namespace paceline::tensor {

using TensorId = std::int32_t;
constexpr std::size_t index(TensorId id) {
  return static_cast<std::size_t>(id);
}

// Where a tensor's memory comes from.
enum class Place : std::uint8_t {
  kArena,   // planned (memory_plan.h); its layout is the device's choice
  kInputs,  // the batch memory, plain rows
  kTokens,
  kLabels,
  kOffsets,          // one for each row
  kInputGradients,   // as kInputs
  kOffsetGradients,  // as kOffsets
  kScores,           // of each row what sigmoid_cross_entropy() or scores() leaves
  kWeights,          // the bound flat vectors, at `offset`
  kGradients,
  kResult,  // three doubles: sum of losses, correct labels, labels
  kCache,   // of keys and values, at `offset`; in the type of the arena's numbers
};

struct Tensor {
  Dims dims;
  Place place = Place::kArena;
  std::size_t offset = 0;  // elements; kWeights, kGradients, kCache
  int element_bytes = 4;   // 4: float or int32; 1: byte; 8: double
  bool adds = false;       // kGradients: added to what an earlier operation of this pass wrote
  TensorId like = -1;      // the tensor whose layout this one has: a gradient has its value's
};

// The forward operations compute what graph.h says. For those of the backward pass, g is the gradient of the
// operation's result.
enum class OperationKind : std::uint8_t {
  kLinear,  // x, weight[, bias] -> y                     x: {rows, ..., in}, or {rows, ...} with `in`
            // elements in all
  kLinearBackwardData,     // g, weight -> dx
  kLinearBackwardWeights,  // x, g -> dweight[, dbias]
  kConv2d,                 // x, weight[, bias] -> y
  kConv2dBackwardData,     // g, weight -> dx
  kConv2dBackwardWeights,  // x, g -> dweight[, dbias]
  kMaxPool2d,  // x -> y[, places]                           places (bytes) where a backward pass follows
  kMaxPool2dBackward,  // g, places[, y] -> dx                       with y: also through a ReLU before the
                       // pooling
  kRelu,
  kGelu,
  kTanh,
  kSigmoid,  // x -> y
  kReluBackward,
  kTanhBackward,
  kSigmoidBackward,  // g, y -> dx
  kGeluBackward,     // g, x -> dx
  kAdd,              // a, b -> y                                  b may be one sample's parameter, or longer
  kSumRows,          // g -> dparameter                            of that parameter
  kMultiply,         // a, b -> y
  kScale,            // x -> y
  kReshape,          // x -> y
  kEmbedding,        // tokens, table -> y
  kEmbeddingBackward,  // tokens, g -> dtable
  kLayerNorm,          // x, gain, bias -> y, means, inverse deviations (one of each for a position)
  kLayerNormBackward,  // g, x, gain, means, inverses[, through] -> dx, dgain, dbias; `through` is added to dx
  kCausalSelfAttention,          // qkv -> y, statistics {rows, heads, T, 2}
  kCausalSelfAttentionBackward,  // g, qkv, statistics, y -> dqkv
  // A cache {positions, 2 * width} of one sample holds the keys of all heads, then the values.
  kKeepKeysValues,       // qkv {1, T, 3 * width} -> the cache's positions 0 to T - 1
  kCachedSelfAttention,  // qkv {1, 1, 3 * width}, labels (its position) -> y, the cache's position
  kAtPosition,           // x {rows, T, width}, labels (one a row: its position) -> y {rows, width}
  // The first one's second result is the device's own: what its backward operation takes. The CPU leaves the
  // gradient of the sum over all labels there, which is then scaled.
  kSoftmaxCrossEntropy,          // logits, labels -> result[, half done]
  kSoftmaxCrossEntropyBackward,  // half done, labels -> dlogits: of the sum, times scale / labels of a sample
  kSigmoidCrossEntropy,          // logits, labels -> result, scores[, dlogits: of the sum over all rows]
  kSigmoidCrossEntropyBackward,  // dlogits -> scaled: times scale
  kMeanSquaredError,             // prediction, target -> result
  kMeanSquaredErrorBackward,     // prediction, target -> gradient of the prediction; of the target with
                                 // `negative`
  kScores,                       // x -> scores
  // Two of the above, for devices that have both as one (join.h).
  kEmbeddingAdd,            // tokens, table, b -> y              b is one sample's parameter
  kAddLayerNorm,            // a, b, gain, bias -> sum, y, means, inverse deviations
  kLinearGelu,              // x, weight[, bias] -> y[, what GELU was of]
  kLinearGeluBackwardData,  // g, weight, what GELU was of -> dx
};
const char* operation_name(OperationKind kind);

struct Operation {
  OperationKind kind;
  std::string name;  // of the graph's node: "relu#3"; with a layer's weight: "fc1"
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  Attributes attributes;
  bool relu = false;      // kLinear, kConv2d, kMaxPool2d: a ReLU of the result
  bool negative = false;  // kMeanSquaredErrorBackward
};

// Elements [begin, end) of the flat gradient are final after operation `operation`.
struct ReadyRange {
  std::size_t operation = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Schedule {
  std::vector<Tensor> tensors;
  std::vector<Operation> operations;
  std::size_t forward_count = 0;  // operations [0, forward_count) are the forward pass
  std::vector<ReadyRange> ready;  // in the order of the operations; disjoint, covering the flat vector
  bool training = false;
  std::size_t elements = 0;        // of the flat vectors of weights and gradients
  std::size_t cache_elements = 0;  // of the key/value cache
};

// Offsets of the graph's parameters in the flat vectors: in the order of their making, each at a multiple of
// 16 elements. INVALID_ARGUMENT where the graph has no loss (nor scores()) or a parameter does not reach it.
absl::StatusOr<ParameterLayout> lay_out_parameters(const GraphBuilder& graph);

// Whether attention of the graph has a key/value cache.
bool has_cache(const GraphBuilder& graph);

// REQUIRES: graph.status() is OK, `layout` is lay_out_parameters(graph), rows >= 1, and 1 where has_cache();
// no training of scores().
Schedule make_schedule(const GraphBuilder& graph, const ParameterLayout& layout, std::int64_t rows,
                       bool training);

}  // namespace paceline::tensor
