// Every operator and every path of its gradient (operator_cases.h) on a device: the loss against the oracle's
// plain loops, the gradients against central differences of the oracle, in double precision. A NaN fails
// every comparison, since each is written as "difference <= bound".

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/compiler.h"
#include "tests/support/run_program.h"
#include "tests/unit/runtime/tensor/trial.h"

namespace paceline::tensor {
namespace {

class Operators : public ::testing::TestWithParam<Case> {};

constexpr std::int64_t kMaxRows = 5;
constexpr int kRounds = 2;
constexpr std::size_t kDerivativesPerParameter = 12;

TEST_P(Operators, LossAndGradientsAreTheOracles) {
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
    Trial run(GetParam(), static_cast<std::uint64_t>(round), {kMaxRows, Precision::kF32, Mode::kTraining});
    const std::int64_t rows = round == 0 ? kMaxRows : run.random().between(1, kMaxRows - 1);
    const ForwardResult result = forward(run.program(), rows);
    const double expected = run.oracle().loss_sum(rows);
    EXPECT_LE(std::abs(result.loss_sum - expected), 2e-5 * (1 + std::abs(expected)));
    if (result.label_count > 0) {
      EXPECT_EQ(result.correct, run.oracle().correct(rows));
    }

    constexpr float kScale = 0.5F;
    backward(run.program(), kScale, false, nullptr);
    for (const auto& p : run.program().parameters().parameters) {
      for (std::size_t k = 0; k < std::min(p.count, kDerivativesPerParameter); ++k) {
        const std::size_t e = p.count <= kDerivativesPerParameter ? k : run.random().rng.below(p.count);
        const double derivative = 0.5 * run.difference(p, e, rows);
        EXPECT_LE(std::abs(run.gradients()[p.offset + e] - derivative), 1e-4 * (1 + std::abs(derivative)))
            << p.name << " element " << e;
      }
    }
  }
}

// gradient(scale) twice, the second time added, is gradient(2 * scale); the padding stays zero.
TEST_P(Operators, GradientsAccumulate) {
  Trial run(GetParam(), 7, {3, Precision::kF32, Mode::kTraining});
  forward(run.program(), 3);
  backward(run.program(), 2, false, nullptr);
  const std::vector<float> whole = run.gradients();
  forward(run.program(), 3);
  backward(run.program(), 1, false, nullptr);
  forward(run.program(), 3);
  backward(run.program(), 1, true, nullptr);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_LE(std::abs(run.gradients()[i] - whole[i]), 1e-5F * (1 + std::abs(whole[i]))) << "element " << i;
  }
  for (const auto& p : run.program().parameters().parameters) {
    for (std::size_t e = p.offset + p.count; e % 16 != 0; ++e) EXPECT_EQ(run.gradients()[e], 0) << p.name;
  }
}

// Of inputs that are trained elsewhere: of each pass by itself, whatever parameters' gradients do.
TEST_P(Operators, GradientsOfInputsAreTheOracles) {
  Trial run(GetParam(), 11, {kMaxRows, Precision::kF32, Mode::kTraining});
  const std::int64_t rows = kMaxRows - 1;
  for (const bool accumulate : {false, true}) {
    forward(run.program(), rows);
    backward(run.program(), 2, accumulate, nullptr);
  }
  const BatchMemory batch = run.program().batch();
  const auto compare = [&](std::span<const float> gradients, std::vector<double>& values) {
    const std::size_t used = gradients.size() / kMaxRows * static_cast<std::size_t>(rows);
    for (std::size_t k = 0; k < std::min<std::size_t>(used, 40); ++k) {
      const std::size_t e = used <= 40 ? k : run.random().rng.below(used);
      const double derivative = 2 * run.difference(values[e], rows);
      EXPECT_LE(std::abs(gradients[e] - derivative), 1e-4 * (1 + std::abs(derivative))) << "element " << e;
    }
  };
  const bool trained = GetParam().name.find("trained") != std::string::npos;
  EXPECT_EQ(batch.input_gradients.size(), trained ? batch.inputs.size() : 0);
  compare(batch.input_gradients, run.oracle().inputs);
  EXPECT_EQ(batch.offset_gradients.size(), batch.offsets.size());
  compare(batch.offset_gradients, run.oracle().offsets);
}

// Exact, because a ranking is made from them.
TEST(SigmoidCrossEntropy, LeavesTheLogits) {
  GraphBuilder graph;
  graph.sigmoid_cross_entropy(graph.add(
      graph.linear(graph.input({1}), graph.parameter("w", {1, 1}, Init::constant(2))), graph.offset()));
  const auto device = make_test_device();
  for (const Mode mode : {Mode::kTraining, Mode::kInference}) {
    auto program = compile(graph, *device, {3, Precision::kF32, mode});
    ASSERT_TRUE(program.ok()) << program.status();
    std::vector<float> weights((*program)->parameters().elements), gradients(weights.size());
    (*program)->bind(weights, gradients);
    (*program)->initialize(1, weights);
    const BatchMemory batch = (*program)->batch();
    const float inputs[] = {1, -200, 0}, offsets[] = {0.5F, 0, 0};
    const std::int32_t labels[] = {1, 1, 0};
    std::copy_n(inputs, 3, batch.inputs.begin());
    std::copy_n(offsets, 3, batch.offsets.begin());
    std::copy_n(labels, 3, batch.labels.begin());
    const ForwardResult result = forward(**program, 3);
    EXPECT_EQ(std::vector<float>(batch.scores.begin(), batch.scores.end()),
              (std::vector<float>{2.5F, -400, 0}));
    EXPECT_NEAR(result.loss_sum, std::log1p(std::exp(-2.5)) + 400 + std::log(2), 1e-9);
    EXPECT_EQ(result.correct, 2);
    EXPECT_EQ(batch.offset_gradients.size(), mode == Mode::kTraining ? 3 : 0);
  }
}

TEST(SigmoidCrossEntropy, NanReachesTheLoss) {
  GraphBuilder graph;
  graph.sigmoid_cross_entropy(graph.dense("w", graph.input({1}), 1));
  const auto device = make_test_device();
  auto program = compile(graph, *device, {1, Precision::kF32, Mode::kInference});
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<float> weights((*program)->parameters().elements, NAN);
  (*program)->bind(weights, {});
  const ForwardResult result = forward(**program, 1);
  EXPECT_TRUE(std::isnan(result.loss_sum));
  EXPECT_EQ(result.correct, 0);
}

// The ranges are disjoint, cover the vector, and nothing changes in one after it was declared final.
TEST_P(Operators, RangesAreFinalWhenTheyAreReady) {
  Trial run(GetParam(), 8, {3, Precision::kF32, Mode::kTraining});
  forward(run.program(), 2);
  std::vector<float> at_ready(run.gradients().size(), -1);
  std::vector<int> covered(at_ready.size(), 0);
  backward(run.program(), 1, false, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      at_ready[i] = run.gradients()[i];
      ++covered[i];
    }
  });
  EXPECT_EQ(covered, std::vector<int>(covered.size(), 1));
  EXPECT_EQ(at_ready, run.gradients());
}

TEST_P(Operators, InferenceGivesTheSameLoss) {
  Trial training(GetParam(), 9, {4, Precision::kF32, Mode::kTraining});
  Trial inference(GetParam(), 9, {4, Precision::kF32, Mode::kInference});
  const ForwardResult a = forward(training.program(), 4);
  const ForwardResult b = forward(inference.program(), 4);
  EXPECT_LE(std::abs(a.loss_sum - b.loss_sum), 1e-6 * (1 + std::abs(a.loss_sum)));
  EXPECT_EQ(a.correct, b.correct);
  EXPECT_EQ(a.label_count, b.label_count);
}

// Products of bf16 operands: 8 bits, so 2^-8 relative for each operand; sums of a few dozen such. Where two
// values of a window are that near, a maximum's gradient goes to the other one.
TEST_P(Operators, Bf16IsNearTheOracle) {
  Trial run(GetParam(), 10, {4, Precision::kBF16, Mode::kTraining});
  const ForwardResult result = forward(run.program(), 4);
  const double expected = run.oracle().loss_sum(4);
  EXPECT_LE(std::abs(result.loss_sum - expected), 0.05 * (1 + std::abs(expected)));
  backward(run.program(), 1, false, nullptr);
  double error = 0;
  double norm = 0;
  for (const auto& p : run.program().parameters().parameters) {
    for (std::size_t k = 0; k < std::min(p.count, kDerivativesPerParameter); ++k) {
      const std::size_t e = p.count <= kDerivativesPerParameter ? k : run.random().rng.below(p.count);
      const double derivative = run.difference(p, e, 4);
      error += (run.gradients()[p.offset + e] - derivative) * (run.gradients()[p.offset + e] - derivative);
      norm += derivative * derivative;
    }
  }
  const double bound = std::string_view(GetParam().name).starts_with("pool") ? 0.25 : 0.1;
  EXPECT_LE(std::sqrt(error), bound * std::sqrt(norm) + 1e-3);
}

INSTANTIATE_TEST_SUITE_P(All, Operators, ::testing::ValuesIn(operator_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace paceline::tensor
