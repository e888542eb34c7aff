#include "runtime/optimizer/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "tests/unit/runtime/optimizer/torch_golden.h"

namespace paceline::optimizer {
namespace {

using tensor::Parameter;
using tensor::ParameterLayout;
using ::testing::HasSubstr;

ParameterLayout one_parameter(std::size_t count, bool decay = true) {
  return {.parameters = {Parameter{.name = "w", .count = count, .decay = decay}},
          .elements = count,
          .trained_elements = count};
}

v1::OptimizerSpec spec_of(v1::OptimizerSpec::Type type) {
  v1::OptimizerSpec spec;
  spec.set_type(type);
  spec.set_learning_rate(0.01);
  if (type == v1::OptimizerSpec::SGD) spec.set_momentum(0.9);
  spec.set_beta1(0.9);
  spec.set_beta2(0.99);
  spec.set_epsilon(1e-6);
  return spec;
}

TEST(Optimizer, AgreesWithTorch) {
  for (const TorchCase& c : kTorchCases) {
    v1::OptimizerSpec spec = spec_of(c.of.type);
    spec.set_learning_rate(c.of.rate);
    spec.set_momentum(c.of.momentum);
    spec.set_nesterov(c.of.nesterov);
    spec.set_weight_decay(c.of.decay);
    spec.set_clip_norm(c.of.clip);
    const std::size_t n = std::size(c.weights);
    auto optimizer = Optimizer::create(spec, one_parameter(n));
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();
    std::vector<float> weights(n), gradient(n);
    for (std::size_t i = 0; i < n; ++i) weights[i] = (static_cast<float>((5 * i) % 7) - 3) / 4;
    for (int t = 0; t < kTorchSteps; ++t) {
      for (std::size_t i = 0; i < n; ++i) {
        gradient[i] = (static_cast<float>((7 * i + 3 * static_cast<std::size_t>(t)) % 11) - 5) / 8;
      }
      ASSERT_TRUE(optimizer->step(weights, gradient, c.of.rate).ok());
    }
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(weights[i], c.weights[i], 2e-6) << "case " << (&c - kTorchCases) << " element " << i;
    }
  }
}

// The formulas of the header in double, one element at a time.
struct Oracle {
  v1::OptimizerSpec spec;
  std::vector<double> weights, first, second;
  int t = 0;

  void step(const std::vector<float>& gradient, double rate, const std::vector<bool>& decays) {
    ++t;
    double square = 0;
    for (float g : gradient) square += static_cast<double>(g) * g;
    const double norm = std::sqrt(square);
    const double clip = spec.clip_norm() > 0 && norm > spec.clip_norm() ? spec.clip_norm() / norm : 1;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double decay = decays[i] ? spec.weight_decay() : 0;
      double g = gradient[i] * clip, &w = weights[i];
      if (spec.type() == v1::OptimizerSpec::ADAMW) {
        w *= 1 - rate * decay;
      } else {
        g += decay * w;
      }
      if (spec.type() == v1::OptimizerSpec::SGD) {
        first[i] = spec.momentum() * first[i] + g;
        w -= rate * (spec.nesterov() ? g + spec.momentum() * first[i] : first[i]);
        continue;
      }
      if (spec.type() == v1::OptimizerSpec::ADAGRAD) {
        first[i] += g * g;
        w -= rate * g / (std::sqrt(first[i]) + spec.epsilon());
        continue;
      }
      first[i] = spec.beta1() * first[i] + (1 - spec.beta1()) * g;
      second[i] = spec.beta2() * second[i] + (1 - spec.beta2()) * g * g;
      const double denominator =
          std::sqrt(second[i]) / std::sqrt(1 - std::pow(spec.beta2(), t)) + spec.epsilon();
      w -= rate / (1 - std::pow(spec.beta1(), t)) * first[i] / denominator;
    }
  }
};

TEST(Optimizer, AgreesWithTheOracleOnRandomLayouts) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 0);
    ParameterLayout layout;
    std::vector<bool> decays, padding;
    for (std::uint64_t k = 0, count = 1 + rng.below(6); k < count; ++k) {
      const Parameter parameter{
          .offset = decays.size(), .count = 1 + rng.below(70), .decay = rng.below(2) == 1};
      layout.parameters.push_back(parameter);
      decays.insert(decays.end(), parameter.count, parameter.decay);
      padding.insert(padding.end(), parameter.count, false);
      const std::uint64_t holes = rng.below(5);
      decays.insert(decays.end(), holes, false);
      padding.insert(padding.end(), holes, true);
    }
    layout.elements = decays.size();
    const std::size_t n = layout.elements;

    v1::OptimizerSpec spec = spec_of(static_cast<v1::OptimizerSpec::Type>(seed % 4));
    spec.set_nesterov(spec.momentum() > 0 && rng.below(2) == 1);
    spec.set_weight_decay(rng.below(2) == 1 ? 0.05 : 0);
    spec.set_clip_norm(rng.below(2) == 1 ? 4 : 0);
    auto optimizer = Optimizer::create(spec, layout);
    ASSERT_TRUE(optimizer.ok()) << optimizer.status();

    std::vector<float> weights(n), gradient(n);
    for (std::size_t i = 0; i < n; ++i) weights[i] = padding[i] ? 0 : rng.normal();
    Oracle oracle{.spec = spec,
                  .weights = std::vector<double>(weights.begin(), weights.end()),
                  .first = std::vector<double>(n),
                  .second = std::vector<double>(n)};
    for (int t = 0; t < 8; ++t) {
      for (std::size_t i = 0; i < n; ++i) gradient[i] = padding[i] ? 0 : rng.normal();
      const double rate = 0.01 * (1 + t);
      auto report = optimizer->step(weights, gradient, rate);
      ASSERT_TRUE(report.ok());
      EXPECT_EQ(report->gradient_norm.has_value(), spec.clip_norm() > 0);
      oracle.step(gradient, rate, decays);
    }
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_TRUE(std::abs(weights[i] - oracle.weights[i]) <= 1e-5) << i << ": " << weights[i];
      EXPECT_TRUE(!padding[i] || weights[i] == 0.0f) << "padding stays zero";
    }
  }
}

TEST(Optimizer, ContinuesFromItsStateBitForBit) {
  for (int type = 0; type < 4; ++type) {
    const auto spec = spec_of(static_cast<v1::OptimizerSpec::Type>(type));
    const ParameterLayout layout = one_parameter(37);
    auto whole = Optimizer::create(spec, layout);
    std::vector<float> weights(37, 0.5f), gradient(37);
    for (std::size_t i = 0; i < 37; ++i) gradient[i] = static_cast<float>(i) * 0.01f - 0.2f;
    for (int t = 0; t < 3; ++t) ASSERT_TRUE(whole->step(weights, gradient, 0.1).ok());

    auto restored = Optimizer::create(spec, layout);
    auto from = whole->state(), to = restored->state();
    const bool has_moments = type == v1::OptimizerSpec::ADAM || type == v1::OptimizerSpec::ADAMW;
    ASSERT_EQ(from.size(), has_moments ? 2u : 1u);
    for (std::size_t k = 0; k < from.size(); ++k) {
      EXPECT_EQ(from[k].name, to[k].name);
      std::copy(from[k].values.begin(), from[k].values.end(), to[k].values.begin());
    }
    restored->set_steps(whole->steps());
    std::vector<float> copy = weights;
    ASSERT_TRUE(whole->step(weights, gradient, 0.1).ok());
    ASSERT_TRUE(restored->step(copy, gradient, 0.1).ok());
    EXPECT_EQ(weights, copy);
    EXPECT_EQ(restored->steps(), 4);
  }
}

// Steps by random parts, in random order, give the bits of whole steps.
TEST(Optimizer, PartsMakeTheWhole) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 1);
    ParameterLayout layout;
    for (std::uint64_t k = 0, count = 1 + rng.below(5); k < count; ++k) {
      layout.parameters.push_back(
          {.offset = layout.elements, .count = 1 + rng.below(50), .decay = rng.below(2) == 1});
      layout.elements += layout.parameters.back().count + rng.below(3);
    }
    auto spec = spec_of(static_cast<v1::OptimizerSpec::Type>(seed % 4));
    spec.set_weight_decay(0.05);
    const float factor = rng.below(2) == 1 ? 0.3f : 1;
    auto whole = Optimizer::create(spec, layout), parts = Optimizer::create(spec, layout);
    ASSERT_TRUE(whole.ok() && parts.ok());
    const std::size_t n = layout.elements;
    std::vector<float> weights(n), gradient(n);
    for (float& w : weights) w = rng.normal();
    std::vector<float> copy = weights;
    for (int t = 0; t < 3; ++t) {
      for (float& g : gradient) g = rng.normal();
      whole->begin_step(0.02);
      whole->step_part(0, weights, gradient, factor);
      std::vector<std::size_t> cuts = {0, n};
      for (int k = 0; k < 4; ++k) cuts.push_back(rng.below(n + 1));
      std::sort(cuts.begin(), cuts.end());
      parts->begin_step(0.02);
      for (std::size_t k = cuts.size() - 1; k > 0; --k) {
        const std::size_t begin = cuts[k - 1], count = cuts[k] - begin;
        parts->step_part(begin, std::span(copy).subspan(begin, count),
                         std::span(gradient).subspan(begin, count), factor);
      }
      ASSERT_EQ(weights, copy);
    }
    EXPECT_EQ(parts->steps(), 3);
  }
}

// Powers of two: products are exact, and the bits are the same. The norm 4 is that of the scaled gradient.
TEST(Optimizer, AScaledGradientIsThatManyTimesAsLargeBeforeItIsClipped) {
  for (int type = 0; type < 4; ++type) {
    for (const double clip : {0.0, 3.0, 5.0}) {
      auto spec = spec_of(static_cast<v1::OptimizerSpec::Type>(type));
      spec.set_clip_norm(clip);
      auto scaled = Optimizer::create(spec, one_parameter(4)),
           plain = Optimizer::create(spec, one_parameter(4));
      std::vector<float> weights(4, 0.5f), copy = weights;
      const std::vector<float> gradient = {1, -1, 1, -1}, doubled = {2, -2, 2, -2};
      const auto report = scaled->step(weights, gradient, 0.1, 2);
      ASSERT_TRUE(report.ok());
      ASSERT_TRUE(plain->step(copy, doubled, 0.1).ok());
      EXPECT_EQ(weights, copy);
      EXPECT_EQ(report->clipped, clip == 3);
      EXPECT_EQ(report->gradient_norm.value_or(4), 4);
      EXPECT_FLOAT_EQ(report->factor, clip == 3 ? 1.5f : 2);
    }
  }
}

// torch.optim.Adagrad(lr=0.1, eps=1e-10) on w = 1 with gradients 0.5, -2: sums 0.25, 4.25.
TEST(Optimizer, AdagradDividesByTheRootOfTheSum) {
  auto spec = spec_of(v1::OptimizerSpec::ADAGRAD);
  spec.set_epsilon(1e-10);
  auto optimizer = Optimizer::create(spec, one_parameter(1));
  ASSERT_TRUE(optimizer.ok()) << optimizer.status();
  std::vector<float> weights = {1};
  ASSERT_TRUE(optimizer->step(weights, std::vector<float>{0.5f}, 0.1).ok());
  EXPECT_NEAR(weights[0], 0.9, 1e-6);
  ASSERT_TRUE(optimizer->step(weights, std::vector<float>{-2.0f}, 0.1).ok());
  EXPECT_NEAR(weights[0], 0.9 + 0.1 * 2 / std::sqrt(4.25), 1e-6);
  EXPECT_EQ(optimizer->state()[0].name, "sum");
  EXPECT_EQ(optimizer->state()[0].values[0], 4.25f);
}

TEST(Optimizer, PlainSgdKeepsNoState) {
  auto spec = spec_of(v1::OptimizerSpec::SGD);
  spec.set_momentum(0);
  EXPECT_TRUE(Optimizer::create(spec, one_parameter(3))->state().empty());
}

TEST(Optimizer, NamesTheFieldThatIsOutOfRange) {
  struct Case {
    v1::OptimizerSpec::Type type;
    const char* field;
    void (*spoil)(v1::OptimizerSpec&);
  };
  const Case cases[] = {
      {v1::OptimizerSpec::SGD, "learningRate", [](v1::OptimizerSpec& s) { s.set_learning_rate(0); }},
      {v1::OptimizerSpec::SGD, "learningRate", [](v1::OptimizerSpec& s) { s.set_learning_rate(NAN); }},
      {v1::OptimizerSpec::SGD, "momentum", [](v1::OptimizerSpec& s) { s.set_momentum(1); }},
      {v1::OptimizerSpec::SGD, "momentum",
       [](v1::OptimizerSpec& s) {
         s.set_nesterov(true);
         s.set_momentum(0);
       }},
      {v1::OptimizerSpec::ADAM, "beta1", [](v1::OptimizerSpec& s) { s.set_beta1(-0.1); }},
      {v1::OptimizerSpec::ADAMW, "beta2", [](v1::OptimizerSpec& s) { s.set_beta2(NAN); }},
      {v1::OptimizerSpec::ADAMW, "epsilon", [](v1::OptimizerSpec& s) { s.set_epsilon(1e-60); }},
      {v1::OptimizerSpec::ADAGRAD, "epsilon", [](v1::OptimizerSpec& s) { s.set_epsilon(0); }},
      {v1::OptimizerSpec::SGD, "weightDecay", [](v1::OptimizerSpec& s) { s.set_weight_decay(-1); }},
      {v1::OptimizerSpec::SGD, "clipNorm", [](v1::OptimizerSpec& s) { s.set_clip_norm(INFINITY); }},
  };
  for (const Case& c : cases) {
    auto spec = spec_of(c.type);
    c.spoil(spec);
    const auto optimizer = Optimizer::create(spec, one_parameter(3));
    EXPECT_EQ(optimizer.status().code(), absl::StatusCode::kInvalidArgument) << c.field;
    EXPECT_THAT(std::string(optimizer.status().message()), HasSubstr(c.field));
  }
}

TEST(Optimizer, ANormThatIsNotFiniteLeavesEverythingAsItWas) {
  auto spec = spec_of(v1::OptimizerSpec::ADAM);
  spec.set_clip_norm(1);
  auto optimizer = Optimizer::create(spec, one_parameter(3));
  std::vector<float> weights = {1, 2, 3};
  const auto report =
      optimizer->step(weights, std::vector<float>{0, std::numeric_limits<float>::quiet_NaN(), 0}, 0.1);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(weights, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(optimizer->steps(), 0);
}

}  // namespace
}  // namespace paceline::optimizer
