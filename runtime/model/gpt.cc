#include "runtime/model/gpt.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace paceline::model {
namespace {

using tensor::GraphBuilder;
using tensor::Init;
using tensor::Value;

constexpr float kDeviation = 0.02F;

// Attention does nothing with the key/value cache, leaves its keys and values there, or reads them there,
// too.
enum class Cache : std::uint8_t { kNone, kKept, kRead };

class Gpt : public Model {
 public:
  explicit Gpt(const v1::GptSpec& spec) : spec_(spec) {}

  absl::Status build(GraphBuilder& graph, const data::SampleShape& sample) const override {
    PL_RETURN_IF_ERROR(check(sample));
    const Value table = tokens_table(graph);
    const Value x = blocks(graph, table, spec_.block_size(), Cache::kNone);
    graph.softmax_cross_entropy(graph.linear(norm(graph, "norm", x), table));
    return graph.status();
  }

  absl::Status build_scores(GraphBuilder& graph, std::int64_t positions, Cache cache) const {
    const Value table = tokens_table(graph);
    Value x = blocks(graph, table, positions, cache);
    if (cache != Cache::kRead) x = graph.at_position(x);
    graph.scores(graph.linear(norm(graph, "norm", x), table));
    return graph.status();
  }

 private:
  Value tokens_table(GraphBuilder& graph) const {
    return graph.parameter("tokens.weight", {spec_.vocabulary_size(), spec_.width()},
                           Init::normal(kDeviation));
  }

  // The blocks' result for the first `count` positions; in a decode step for the one that the label says.
  Value blocks(GraphBuilder& graph, Value table, std::int64_t count, Cache cache) const {
    const Value positions =
        graph.parameter("positions.weight", {spec_.block_size(), spec_.width()}, Init::normal(kDeviation));
    Value x = graph.add(graph.embedding(graph.tokens(count), table),
                        cache == Cache::kRead ? graph.embedding_of_label(positions) : positions);
    for (std::int64_t layer = 0; layer < spec_.layers(); ++layer) {
      x = block(graph, str_cat("blocks.", layer, "."), x, cache);
    }
    return x;
  }

  absl::Status check(const data::SampleShape& sample) const {
    if (sample.kind != data::InputKind::kTokens || sample.dims != tensor::Dims{spec_.block_size()} ||
        sample.labels != spec_.block_size()) {
      return absl::InvalidArgumentError(
          str_cat("gpt needs samples of blockSize = ", spec_.block_size(),
                  " tokens with as many labels; the data has ",
                  sample.kind == data::InputKind::kTokens ? "tokens" : "numbers", " of shape ",
                  tensor::dims_text(sample.dims), " with ", sample.labels, " labels"));
    }
    if (sample.classes > spec_.vocabulary_size()) {
      return absl::InvalidArgumentError(str_cat("gpt has vocabularySize = ", spec_.vocabulary_size(),
                                                "; the data has ", sample.classes, " different tokens"));
    }
    return absl::OkStatus();
  }

  Value norm(GraphBuilder& graph, const std::string& name, Value x) const {
    const Value gain = graph.parameter(name + ".weight", {spec_.width()}, Init::constant(1), false);
    const Value bias = graph.parameter(name + ".bias", {spec_.width()}, Init::constant(0), false);
    return graph.layer_norm(x, gain, bias);
  }

  Value attention(GraphBuilder& graph, Value qkv, Cache cache) const {
    switch (cache) {
      case Cache::kNone:
        return graph.causal_self_attention(qkv, spec_.heads());
      case Cache::kKept:
        return graph.causal_self_attention(qkv, spec_.heads(), spec_.block_size());
      case Cache::kRead:
        return graph.cached_self_attention(qkv, spec_.heads(), spec_.block_size());
    }
    return {};
  }

  Value block(GraphBuilder& graph, const std::string& name, Value x, Cache cache) const {
    const std::int64_t width = spec_.width();
    const Init plain = Init::normal(kDeviation);
    const Init residual = Init::normal(kDeviation / std::sqrt(2.0F * static_cast<float>(spec_.layers())));
    const Value qkv = graph.dense(name + "qkv", norm(graph, name + "norm1", x), 3 * width, plain);
    const Value seen = attention(graph, qkv, cache);
    x = graph.add(x, graph.dense(name + "projection", seen, width, residual));
    const Value up = graph.dense(name + "up", norm(graph, name + "norm2", x), 4 * width, plain);
    return graph.add(x, graph.dense(name + "down", graph.gelu(up), width, residual));
  }

  v1::GptSpec spec_;
};

absl::Status positive(std::string_view field, std::int64_t value) {
  if (value >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(str_cat("model.", field, " is ", value, " and must be at least 1"));
}

absl::Status check_spec(const v1::GptSpec& spec) {
  PL_RETURN_IF_ERROR(positive("layers", spec.layers()));
  PL_RETURN_IF_ERROR(positive("heads", spec.heads()));
  PL_RETURN_IF_ERROR(positive("width", spec.width()));
  PL_RETURN_IF_ERROR(positive("blockSize", spec.block_size()));
  PL_RETURN_IF_ERROR(positive("vocabularySize", spec.vocabulary_size()));
  if (spec.width() % spec.heads() != 0) {
    return absl::InvalidArgumentError(
        str_cat("model.width is ", spec.width(), " and must be a multiple of heads = ", spec.heads()));
  }
  return absl::OkStatus();
}

absl::Status build_scores(const v1::GptSpec& spec, std::int64_t positions, Cache cache, GraphBuilder& graph) {
  PL_RETURN_IF_ERROR(check_spec(spec));
  if (positions < 1 || positions > spec.block_size()) {
    return absl::InvalidArgumentError(
        str_cat(positions, " positions; allowed: 1 to model.blockSize = ", spec.block_size()));
  }
  return Gpt(spec).build_scores(graph, positions, cache);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> make_gpt(const v1::GptSpec& spec) {
  PL_RETURN_IF_ERROR(check_spec(spec));
  return std::make_unique<Gpt>(spec);
}

absl::Status build_gpt_scores(const v1::GptSpec& spec, std::int64_t positions, GraphBuilder& graph) {
  return build_scores(spec, positions, Cache::kNone, graph);
}

absl::Status build_gpt_prefill(const v1::GptSpec& spec, std::int64_t positions, GraphBuilder& graph) {
  return build_scores(spec, positions, Cache::kKept, graph);
}

absl::Status build_gpt_step(const v1::GptSpec& spec, GraphBuilder& graph) {
  return build_scores(spec, 1, Cache::kRead, graph);
}

}  // namespace paceline::model
