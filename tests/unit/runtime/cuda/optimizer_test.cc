#include "runtime/cuda/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "runtime/tensor/cpu/kernels/kernels.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

using ::testing::ElementsAre;

class GpuOptimizerTest : public GpuTest {
 protected:
  Clipping clip(const GpuOptimizer& optimizer, const std::vector<float>& gradient, double clip_norm) {
    const auto g = upload(gradient.empty() ? std::vector<float>{7} : gradient);
    const auto scratch = array<double>(square_parts(gradient.size()));
    const auto result = array<Clipping>(1);
    const absl::Status status =
        optimizer.clip(*stream_, g.data(), gradient.size(), clip_norm, scratch.data(), result.data());
    EXPECT_TRUE(status.ok()) << status;
    return download(result)[0];
  }

  Rng rng_{24, 0};
};

TEST_F(GpuOptimizerTest, TheNormIsThatOfTheCpuAndClips) {
  const auto optimizer = must(GpuOptimizer::load(context_));
  for (const std::size_t n : {1U, 3U, 4U, 5U, 4096U, 4099U, 50'001U}) {
    const auto gradient = random_values<float>(rng_, n, 3);
    const double norm = std::sqrt(tensor::cpu::kernels().squared_norm(gradient.data(), n));
    in_both_orders([&] {
      const Clipping within = clip(optimizer, gradient, 2 * norm),
                     beyond = clip(optimizer, gradient, norm / 4);
      EXPECT_NEAR(within.norm, norm, 1e-13 * norm);
      EXPECT_EQ(within.factor, 1);
      EXPECT_NEAR(beyond.factor, 0.25, 1e-7);
      EXPECT_EQ(beyond.norm, within.norm);
      EXPECT_EQ(beyond.finite, 1U);
    });
  }
  EXPECT_EQ(clip(optimizer, {}, 1).norm, 0);
}

TEST_F(GpuOptimizerTest, ANormThatIsNoneIsTold) {
  const auto optimizer = must(GpuOptimizer::load(context_));
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> gradient(100, 1);
    gradient[99] = bad;
    EXPECT_EQ(clip(optimizer, gradient, 1).finite, 0U);
  }
}

struct AdamState {
  std::vector<float> weights, first, second;
};

// Padding lies between some ranges, and one begins inside an access.
const std::vector<UpdateRange> kRanges{
    {0, 5000, true}, {5008, 5011, false}, {5013, 5050, true}, {5050, 9001, false}};
constexpr std::size_t kElements = 9004;

class AdamTest : public GpuOptimizerTest, public ::testing::WithParamInterface<bool> {};

TEST_P(AdamTest, StepsAreThoseOfTheCpu) {
  const bool decoupled = GetParam();
  const auto optimizer = must(GpuOptimizer::load(context_));
  const std::vector<UpdateChunk> chunks = update_chunks(kRanges);
  const auto on_gpu = upload(chunks);
  AdamState cpu{random_values<float>(rng_, kElements), std::vector<float>(kElements, 0),
                std::vector<float>(kElements, 0)};
  const auto weights = upload(cpu.weights), first = upload(cpu.first), second = upload(cpu.second);
  const auto copy = upload(std::vector<BFloat16>(kElements, BFloat16(7)));
  const auto scratch = array<double>(square_parts(kElements));
  const auto clipping = array<Clipping>(1);
  for (int t = 1; t <= 3; ++t) {
    if (!on_real_gpu())
      fake().control().order = t == 1 ? fake_cuda::Order::kAscending : fake_cuda::Order::kDescending;
    const auto gradient = random_values<float>(rng_, kElements, 2);
    const double norm = std::sqrt(tensor::cpu::kernels().squared_norm(gradient.data(), kElements));
    const double decay = 0.1, rate = 0.01, clip_norm = norm / 3;
    const tensor::cpu::AdamStep step{
        .clip = static_cast<float>(clip_norm / norm),
        .step_size = static_cast<float>(rate / (1 - std::pow(0.9, t))),
        .beta1 = 0.9F,
        .one_minus_beta1 = static_cast<float>(1 - 0.9),
        .beta2 = 0.95F,
        .one_minus_beta2 = static_cast<float>(1 - 0.95),
        .root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(0.95, t))),
        .epsilon = 1e-8F,
        .weight_decay = decoupled ? 0 : static_cast<float>(decay),
        .shrink = decoupled ? static_cast<float>(1 - rate * decay) : 1};
    for (const UpdateRange& range : kRanges) {
      tensor::cpu::AdamStep part = step;
      if (!range.decay) part.weight_decay = 0, part.shrink = 1;
      tensor::cpu::kernels().adam(part, cpu.weights.data() + range.begin, cpu.first.data() + range.begin,
                                  cpu.second.data() + range.begin, gradient.data() + range.begin,
                                  range.end - range.begin);
    }
    const auto g = upload(gradient);
    ASSERT_TRUE(
        optimizer.clip(*stream_, g.data(), kElements, clip_norm, scratch.data(), clipping.data()).ok());
    ASSERT_TRUE(optimizer
                    .adam(*stream_,
                          {.update = {.chunks = on_gpu.data(),
                                      .weights = weights.data(),
                                      .gradient = g.data(),
                                      .copy = copy.data(),
                                      .clipping = clipping.data()},
                           .first = first.data(),
                           .second = second.data(),
                           .step_size = step.step_size,
                           .beta1 = step.beta1,
                           .one_minus_beta1 = step.one_minus_beta1,
                           .beta2 = step.beta2,
                           .one_minus_beta2 = step.one_minus_beta2,
                           .root_correction = step.root_correction,
                           .epsilon = step.epsilon,
                           .weight_decay = step.weight_decay,
                           .shrink = step.shrink},
                          chunks.size())
                    .ok());
    expect_near(download(weights), doubles(cpu.weights), 1e-6);
    expect_near(download(first), doubles(cpu.first), 1e-6);
    expect_near(download(second), doubles(cpu.second), 1e-6);
  }
  const auto rounded = download(copy);
  const auto exact = download(weights);
  std::size_t next = 0;
  for (std::size_t i = 0; i < kElements; ++i) {
    while (next < kRanges.size() && i >= kRanges[next].end) ++next;
    const bool updated = next < kRanges.size() && i >= kRanges[next].begin;
    ASSERT_EQ(rounded[i].bits, BFloat16(updated ? exact[i] : 7).bits) << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Decay, AdamTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Decoupled" : "InTheGradient"; });

// Every rule against the CPU's, to the bit: from the same gradient and the same factor of clipping.
class RulesTest : public GpuOptimizerTest {
 protected:
  static constexpr float kFactor = 0.37F;

  RulesTest() : optimizer_(must(GpuOptimizer::load(context_))) {}
  void TearDown() override {
    optimizer_.reset();
    GpuOptimizerTest::TearDown();
  }

  // Three steps of both: cpu(range, weights, state, gradient, n), gpu(update, state).
  template <typename Cpu, typename Gpu>
  void check(Cpu cpu, Gpu gpu) {
    if (tensor::cpu::kernels().level == SimdLevel::kPortable)
      GTEST_SKIP() << "this processor has no fused multiply-add that we use";
    const auto chunks = upload(update_chunks(kRanges));
    std::vector<float> weights = random_values<float>(rng_, kElements), state(kElements, 0);
    const auto on_gpu = upload(weights), state_on_gpu = upload(state);
    const auto clipping = upload(std::vector<Clipping>{{.norm = 1, .factor = kFactor, .finite = 1}});
    for (int t = 0; t < 3; ++t) {
      const auto gradient = random_values<float>(rng_, kElements, 2);
      for (const UpdateRange& range : kRanges) {
        cpu(range, weights.data() + range.begin, state.data() + range.begin, gradient.data() + range.begin,
            range.end - range.begin);
      }
      const auto g = upload(gradient);
      const absl::Status status = gpu(UpdateParams{.chunks = chunks.data(),
                                                   .weights = on_gpu.data(),
                                                   .gradient = g.data(),
                                                   .copy = nullptr,
                                                   .clipping = clipping.data()},
                                      state_on_gpu.data(), chunks.count);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_TRUE(same_bits(download(on_gpu), weights)) << "step " << t;
      EXPECT_TRUE(same_bits(download(state_on_gpu), state)) << "step " << t;
    }
  }

  std::optional<GpuOptimizer> optimizer_;
};

TEST_F(RulesTest, SgdIsThatOfTheCpu) {
  struct Case {
    float momentum;
    bool nesterov;
  };
  for (const Case& c : {Case{0, false}, Case{0.9F, false}, Case{0.9F, true}}) {
    check(
        [&](const UpdateRange& range, float* w, float* b, const float* g, std::size_t n) {
          tensor::cpu::kernels().sgd({.clip = kFactor,
                                      .learning_rate = 0.05F,
                                      .momentum = c.momentum,
                                      .weight_decay = range.decay ? 0.01F : 0,
                                      .nesterov = c.nesterov},
                                     w, c.momentum > 0 ? b : nullptr, g, n);
        },
        [&](const UpdateParams& update, float* b, std::size_t chunks) {
          return optimizer_->sgd(*stream_,
                                 {.update = update,
                                  .momentum = c.momentum > 0 ? b : nullptr,
                                  .learning_rate = 0.05F,
                                  .factor = c.momentum,
                                  .weight_decay = 0.01F,
                                  .nesterov = c.nesterov},
                                 chunks);
        });
  }
}

TEST_F(RulesTest, AdagradIsThatOfTheCpu) {
  check(
      [](const UpdateRange& range, float* w, float* sum, const float* g, std::size_t n) {
        tensor::cpu::kernels().adagrad({.clip = kFactor,
                                        .learning_rate = 0.05F,
                                        .epsilon = 1e-8F,
                                        .weight_decay = range.decay ? 0.01F : 0},
                                       w, sum, g, n);
      },
      [&](const UpdateParams& update, float* sum, std::size_t chunks) {
        return optimizer_->adagrad(
            *stream_,
            {.update = update, .sum = sum, .learning_rate = 0.05F, .epsilon = 1e-8F, .weight_decay = 0.01F},
            chunks);
      });
}

TEST_F(GpuOptimizerTest, NoWeightChangesAfterANormThatIsNone) {
  const auto optimizer = must(GpuOptimizer::load(context_));
  const std::vector<UpdateChunk> chunks = update_chunks(std::vector<UpdateRange>{{0, 100, true}});
  const auto on_gpu = upload(chunks);
  const std::vector<float> values = random_values<float>(rng_, 100);
  const auto weights = upload(values), moments = upload(values), gradient = upload(values);
  const auto clipping = upload(std::vector<Clipping>{{.norm = std::nan(""), .factor = 1, .finite = 0}});
  AdamParams params{.update = {.chunks = on_gpu.data(),
                               .weights = weights.data(),
                               .gradient = gradient.data(),
                               .copy = nullptr,
                               .clipping = clipping.data()},
                    .first = moments.data(),
                    .second = moments.data(),
                    .step_size = 1,
                    .beta1 = 0.5,
                    .one_minus_beta1 = 0.5,
                    .beta2 = 0.5,
                    .one_minus_beta2 = 0.5,
                    .root_correction = 1,
                    .epsilon = 1,
                    .weight_decay = 0.5,
                    .shrink = 0.5};
  ASSERT_TRUE(optimizer.adam(*stream_, params, chunks.size()).ok());
  EXPECT_EQ(download(weights), values);
  EXPECT_EQ(download(moments), values);
  params.update.clipping = nullptr;
  ASSERT_TRUE(optimizer.adam(*stream_, params, chunks.size()).ok());
  EXPECT_NE(download(weights), values);
  EXPECT_TRUE(optimizer.adam(*stream_, {}, 0).ok());
}

TEST(UpdateChunks, AreCutWhereAccessesBegin) {
  EXPECT_THAT(update_chunks(std::vector<UpdateRange>{{0, 4096, true}, {4096, 8195, false}}),
              ElementsAre(UpdateChunk{0, 4096, 1}, UpdateChunk{4096, 4096, 0}, UpdateChunk{8192, 3, 0}));
  EXPECT_THAT(update_chunks(std::vector<UpdateRange>{{3, 5000, true}}),
              ElementsAre(UpdateChunk{3, 1, 1}, UpdateChunk{4, 4096, 1}, UpdateChunk{4100, 900, 1}));
  EXPECT_THAT(update_chunks(std::vector<UpdateRange>{{5, 7, false}, {7, 7, true}}),
              ElementsAre(UpdateChunk{5, 2, 0}));
  EXPECT_EQ(square_parts(0), 1U);
  EXPECT_EQ(square_parts(4097), 2U);
  EXPECT_EQ(square_parts(124'000'000), 1024U);
}

}  // namespace
}  // namespace paceline::cuda
