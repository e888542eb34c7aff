// Graphs that end with scores(), on a device: the numbers are those of the oracle's plain loops.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
    expect_scores(plain_case(), stream, Precision::kF32, 2e-5);
  }
}

// Three operations and a product, whose operands (on the GPU also their results) are rounded to 8 bits.
TEST(Scores, OfBf16AreNearTheOracles) {
  for (std::uint64_t stream = 20; stream < 24; ++stream) {
    expect_scores(position_case(8), stream, Precision::kBF16, 0.03);
    expect_scores(position_case(5), stream, Precision::kBF16, 0.03);
  }
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
