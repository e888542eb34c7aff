#include "runtime/pserver/sparse/row_optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace paceline::pserver::sparse {
namespace {

// One element, in double, as the formulas are written down.
struct Oracle {
  double w = 0, a = 0, b = 0;
  void step(const RowOptimizer& rule, double rate, double g, double t) {
    switch (rule.kind) {
      case RowOptimizer::Kind::kSgd:
        a = rule.momentum * a + g;
        w -= rate * a;
        break;
      case RowOptimizer::Kind::kAdagrad:
        a += g * g;
        w -= rate * g / (std::sqrt(a) + rule.epsilon);
        break;
      case RowOptimizer::Kind::kAdam: {
        a = rule.beta1 * a + (1 - rule.beta1) * g;
        b = rule.beta2 * b + (1 - rule.beta2) * g * g;
        const double first = a / (1 - std::pow(rule.beta1, t)), second = b / (1 - std::pow(rule.beta2, t));
        w -= rate * first / (std::sqrt(second) + rule.epsilon);
        break;
      }
      case RowOptimizer::Kind::kFtrl: {
        const double sigma = (std::sqrt(b + g * g) - std::sqrt(b)) / rate;
        a += g - sigma * w;
        b += g * g;
        const double sign = a > 0 ? 1 : -1;
        w = std::abs(a) <= rule.l1 ? 0
                                   : -(a - sign * rule.l1) / ((rule.beta + std::sqrt(b)) / rate + rule.l2);
        break;
      }
    }
  }
};

RowOptimizer rule_of(RowOptimizer::Kind kind, double momentum = 0) {
  RowOptimizer rule;
  rule.kind = kind;
  rule.learning_rate = 0.1;
  rule.momentum = momentum;
  rule.l1 = 0.05;
  rule.l2 = 0.01;
  return rule;
}

TEST(RowStepper, AgreesWithTheFormulas) {
  const RowOptimizer rules[] = {rule_of(RowOptimizer::Kind::kSgd), rule_of(RowOptimizer::Kind::kSgd, 0.9),
                                rule_of(RowOptimizer::Kind::kAdagrad), rule_of(RowOptimizer::Kind::kAdam),
                                rule_of(RowOptimizer::Kind::kFtrl)};
  for (const RowOptimizer& rule : rules) {
    for (const std::size_t dim : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      SCOPED_TRACE(::testing::Message() << "optimiser " << static_cast<int>(rule.kind) << ", dim " << dim);
      RowStepper stepper(rule, dim);
      Rng rng(dim, 1);
      std::vector<float> row(stepper.row_floats(), 3.0f);
      std::vector<Oracle> oracle(dim);
      for (std::size_t k = 0; k < dim; ++k) row[k] = static_cast<float>(oracle[k].w = rng.normal() * 0.1f);
      stepper.start(row.data());
      if (rule.kind == RowOptimizer::Kind::kFtrl) {
        for (std::size_t k = 0; k < dim; ++k) oracle[k].a = row[dim + k];
      }
      for (std::uint32_t t = 1; t <= 50; ++t) {
        const double factor = t % 2 == 0 ? 1 : 0.5, fraction = t < 10 ? 0.1 * t : 1;
        std::vector<float> gradient(dim);
        for (std::size_t k = 0; k < dim; ++k) {
          gradient[k] = rng.normal();
          const double scheduled = rule.kind == RowOptimizer::Kind::kFtrl ? 1 : fraction;
          oracle[k].step(rule, rule.learning_rate * scheduled, factor * gradient[k], t);
        }
        stepper.begin(static_cast<float>(factor), fraction);
        stepper.step(row.data(), gradient.data(), t);
      }
      for (std::size_t k = 0; k < dim; ++k) {
        EXPECT_NEAR(row[k], oracle[k].w, 1e-4 * std::max(1.0, std::abs(oracle[k].w)));
      }
    }
  }
}

// A row's step count is its own, also beyond those whose corrections are kept.
TEST(RowStepper, AdamCorrectsForTheStepsOfTheRow) {
  for (const std::uint32_t steps : {1u, 2u, 4096u, 4097u, 100'000u}) {
    RowStepper stepper(rule_of(RowOptimizer::Kind::kAdam), 1);
    std::vector<float> row = {0, 0, 0};
    stepper.begin(1, 1);
    const float gradient = 2;
    stepper.step(row.data(), &gradient, steps);
    Oracle oracle;
    oracle.step(rule_of(RowOptimizer::Kind::kAdam), 0.1, 2, steps);
    EXPECT_NEAR(row[0], oracle.w, 1e-5 * std::abs(oracle.w)) << steps;
  }
}

TEST(RowStepper, FtrlBeginsWithTheInitialWeightsAndMakesSmallOnesZero) {
  RowOptimizer rule = rule_of(RowOptimizer::Kind::kFtrl);
  RowStepper stepper(rule, 3);
  std::vector<float> row = {0.25f, -0.5f, 0, 9, 9, 9, 9, 9, 9};
  stepper.start(row.data());
  stepper.begin(1, 1);
  const std::vector<float> nothing(3);
  stepper.step(row.data(), nothing.data(), 1);
  EXPECT_FLOAT_EQ(row[0], 0.25f);
  EXPECT_FLOAT_EQ(row[1], -0.5f);
  EXPECT_EQ(row[2], 0.0f);
  const std::vector<float> small = {0, 0, 0.04f};  // below l1
  stepper.step(row.data(), small.data(), 2);
  EXPECT_EQ(row[2], 0.0f);
  stepper.step(row.data(), small.data(), 3);  // together above
  EXPECT_LT(row[2], 0.0f);
}

}  // namespace
}  // namespace paceline::pserver::sparse
