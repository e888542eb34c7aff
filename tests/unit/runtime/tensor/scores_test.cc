// Graphs that end with scores(), on a device: the numbers are those of the oracle's plain loops.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/unit/runtime/tensor/trial.h"

namespace paceline::tensor {
namespace {

constexpr std::int64_t kScoreRows = 4;

// A position of a sequence, to which the first of more positions were added, as a gpt has it. Widths that
// are, and are not, whole vectors of the GPU's accesses.
Case position_case(std::int64_t width) {
  return {"position", [width](GraphBuilder& g, Random& r) {
            constexpr Init kWeights = {Init::Kind::kNormal, 0.4F};
            const std::int64_t time = r.between(2, 7);
            const Value h = g.embedding(g.tokens(time), g.parameter("table", {9, width}, kWeights));
            const Value x = g.add(h, g.parameter("positions", {time + r.between(1, 5), width}, kWeights));
            g.scores(g.dense("output", g.at_position(g.tanh(x)), 11, kWeights));
          }};
}

Case plain_case() {
  return {"plain", [](GraphBuilder& g, Random& r) {
            g.scores(g.dense("a", g.input({r.between(2, 5), r.between(2, 9)}), r.between(2, 20)));
          }};
}

// The row of a table that the label says.
Case label_case(std::int64_t width) {
  return {
      "label", [width](GraphBuilder& g, Random& r) {
        constexpr Init kWeights = {Init::Kind::kNormal, 0.4F};
        const Value h = g.embedding(g.tokens(1), g.parameter("table", {9, width}, kWeights));
        const Value p = g.embedding_of_label(g.parameter("positions", {r.between(2, 9), width}, kWeights));
        g.scores(g.dense("output", g.tanh(g.add(h, p)), 11, kWeights));
      }};
}

// Each number is off by at most `tolerance` of its size or of 1.
void expect_scores(const Case& c, std::uint64_t stream, Precision precision, double tolerance) {
  SCOPED_TRACE("seed " + std::to_string(kSeed) + " stream " + std::to_string(stream));
  Trial run(c, stream, {kScoreRows, precision, Mode::kInference});
  for (const std::int64_t rows : {kScoreRows, kScoreRows - 1}) {
    const ForwardResult result = forward(run.program(), rows);
    const std::vector<double> expected = run.oracle().scores(rows);
    const std::span<const float> scores = run.program().batch().scores;
    ASSERT_EQ(scores.size(), expected.size() / static_cast<std::size_t>(rows) * kScoreRows);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double off = std::abs(static_cast<double>(scores[i]) - expected[i]);
      EXPECT_LE(off, tolerance * (1 + std::abs(expected[i]))) << i;
    }
    EXPECT_EQ(result.loss_sum, 0);
    EXPECT_EQ(result.label_count, 0);
  }
}

TEST(Scores, AreTheOracles) {
  for (std::uint64_t stream = 20; stream < 24; ++stream) {
    expect_scores(position_case(8), stream, Precision::kF32, 2e-5);
    expect_scores(position_case(5), stream, Precision::kF32, 2e-5);
    expect_scores(label_case(8), stream, Precision::kF32, 2e-5);
    expect_scores(label_case(5), stream, Precision::kF32, 2e-5);
    expect_scores(plain_case(), stream, Precision::kF32, 2e-5);
  }
}

// Three operations and a product, whose operands (on the GPU also their results) are rounded to 8 bits.
TEST(Scores, OfBf16AreNearTheOracles) {
  for (std::uint64_t stream = 20; stream < 24; ++stream) {
    expect_scores(position_case(8), stream, Precision::kBF16, 0.03);
    expect_scores(position_case(5), stream, Precision::kBF16, 0.03);
    expect_scores(label_case(8), stream, Precision::kBF16, 0.03);
  }
}

// Attention of two layers, over `count` positions whose keys and values a cache keeps, or of one position
// that sees them there.
void attention_graph(GraphBuilder& g, std::int64_t count, bool step) {
  constexpr std::int64_t kWidth = 12, kHeads = 2, kCached = 9;
  constexpr Init kWeights = {Init::Kind::kNormal, 0.4F};
  Value x = g.embedding(g.tokens(count), g.parameter("table", {9, kWidth}, kWeights));
  for (const char* const name : {"a", "b"}) {
    const Value qkv = g.dense(name, x, 3 * kWidth, kWeights);
    x = g.add(x, step ? g.cached_self_attention(qkv, kHeads, kCached)
                      : g.causal_self_attention(qkv, kHeads, kCached));
  }
  g.scores(g.dense("output", step ? x : g.at_position(x), 11, kWeights));
}

// The first positions by one pass, the others by steps, of programs that share a cache: each one's scores are
// those of a pass over all.
void expect_steps_of_a_cache(Precision precision, double tolerance) {
  const std::vector<std::int32_t> tokens = {3, 1, 4, 1, 5, 2, 6, 5, 3};
  const auto device = make_test_device();
  std::shared_ptr<Queue> queue = device->open_queue().value();
  const auto cache = std::make_shared<KeyValueCache>();
  std::vector<float> weights;
  const auto program_of = [&](std::int64_t count, bool step) {
    GraphBuilder graph;
    attention_graph(graph, count, step);
    auto program = compile(graph, *device,
                           {.precision = precision,
                            .mode = Mode::kInference,
                            .queue = queue,
                            .cache = step || count == 4 ? cache : nullptr});
    EXPECT_TRUE(program.ok()) << program.status();
    if (weights.empty()) {
      weights.resize((*program)->parameters().elements);
      (*program)->initialize(kSeed, weights);
    }
    (*program)->bind(weights, {});
    return *std::move(program);
  };
  const auto all = program_of(9, false), prefill = program_of(4, false), step = program_of(1, true);
  const auto expect_same = [&](Program& program, std::size_t position) {
    std::copy(tokens.begin(), tokens.end(), all->batch().tokens.begin());
    all->batch().labels[0] = static_cast<std::int32_t>(position);
    forward(*all, 1);
    program.batch().labels[0] = static_cast<std::int32_t>(position);
    forward(program, 1);
    for (std::size_t i = 0; i < 11; ++i) {
      const auto expected = static_cast<double>(all->batch().scores[i]);
      EXPECT_LE(std::abs(static_cast<double>(program.batch().scores[i]) - expected),
                tolerance * (1 + std::abs(expected)))
          << "position " << position << ", score " << i;
    }
  };
  std::copy_n(tokens.begin(), 4, prefill->batch().tokens.begin());
  expect_same(*prefill, 3);
  for (std::size_t position = 4; position < tokens.size(); ++position) {
    step->batch().tokens[0] = tokens[position];
    expect_same(*step, position);
  }
  // Back to earlier ones: what comes behind them in the cache is not seen.
  for (const std::size_t position : {2, 0, 1}) {
    step->batch().tokens[0] = tokens[position];
    expect_same(*step, position);
  }
}

TEST(CachedAttention, StepsGiveTheScoresOfAPassOverAll) {
  expect_steps_of_a_cache(Precision::kF32, 2e-5);
}

TEST(CachedAttention, StepsOfBf16GiveNearlyTheScoresOfAPassOverAll) {
  expect_steps_of_a_cache(Precision::kBF16, 0.03);
}

TEST(CachedAttention, IsOfOneSample) {
  GraphBuilder graph;
  attention_graph(graph, 1, true);
  const auto device = make_test_device();
  const auto program = compile(graph, *device, {.max_rows = 2, .mode = Mode::kInference});
  EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Scores, NanReachesThem) {
  GraphBuilder graph;
  graph.scores(graph.dense("w", graph.input({1}), 2));
  const auto device = make_test_device();
  auto program = compile(graph, *device, {1, Precision::kF32, Mode::kInference});
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<float> weights((*program)->parameters().elements, NAN);
  (*program)->bind(weights, {});
  forward(**program, 1);
  for (const float score : (*program)->batch().scores) EXPECT_TRUE(std::isnan(score));
}

}  // namespace
}  // namespace paceline::tensor
