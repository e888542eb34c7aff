#include "runtime/data/auc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace paceline::data {
namespace {

constexpr std::uint64_t kSeed = 20261121;

struct Samples {
  std::vector<float> scores;
  std::vector<std::int32_t> labels;
};

// Scores from a few values, so that many are equal.
Samples samples_of(std::size_t count, std::uint64_t distinct, std::uint64_t stream) {
  Rng rng(kSeed, stream);
  Samples s;
  for (std::size_t i = 0; i < count; ++i) {
    s.scores.push_back(static_cast<float>(rng.below(distinct)) - 3.5F);
    s.labels.push_back(rng.below(3) == 0 ? 1 : 0);
  }
  return s;
}

// Every pair, as the definition says.
double brute_force(const Samples& s) {
  double in_order = 0, pairs = 0;
  for (std::size_t i = 0; i < s.scores.size(); ++i) {
    for (std::size_t j = 0; j < s.scores.size(); ++j) {
      if (s.labels[i] != 1 || s.labels[j] != 0) continue;
      pairs += 1;
      in_order += s.scores[i] > s.scores[j] ? 1 : s.scores[i] == s.scores[j] ? 0.5 : 0;
    }
  }
  return in_order / pairs;
}

std::optional<double> value_of(const Samples& s) {
  Auc auc;
  auc.add(s.scores, s.labels);
  return auc.value();
}

TEST(Auc, SmallCasesByHand) {
  EXPECT_EQ(value_of({{1, 2}, {0, 1}}), 1.0);
  EXPECT_EQ(value_of({{2, 1}, {0, 1}}), 0.0);
  EXPECT_EQ(value_of({{1, 1}, {0, 1}}), 0.5);
  EXPECT_EQ(value_of({{1, 2, 3, 2}, {0, 1, 0, 0}}), 0.5);  // above one, below one, equal to one
  EXPECT_EQ(value_of({{0.0F, -0.0F}, {1, 0}}), 0.5);       // the same number
  EXPECT_EQ(value_of({{-INFINITY, 0, INFINITY}, {0, 0, 1}}), 1.0);
}

TEST(Auc, IsThePairCountOnRandomSamples) {
  for (std::uint64_t stream = 0; stream < 60; ++stream) {
    const Samples s = samples_of(2 + stream * 7, 1 + stream % 40, stream);
    const auto got = value_of(s);
    const double expected = brute_force(s);
    ASSERT_EQ(got.has_value(), !std::isnan(expected)) << "stream " << stream;
    if (got.has_value()) {
      EXPECT_NEAR(*got, expected, 1e-12) << "stream " << stream;
    }
  }
}

TEST(Auc, PartsMergedAreTheWhole) {
  const Samples s = samples_of(1000, 50, 7);
  Auc whole, merged;
  whole.add(s.scores, s.labels);
  for (std::size_t begin = 1000; begin > 0; begin -= 125) {  // in another order
    Auc part;
    part.add(std::span(s.scores).subspan(begin - 125, 125), std::span(s.labels).subspan(begin - 125, 125));
    merged.merge(part);
  }
  EXPECT_EQ(whole.value(), merged.value());
  EXPECT_EQ(whole.value(), whole.value());  // asking changes nothing
}

TEST(Auc, NothingWithoutBothKinds) {
  EXPECT_EQ(value_of({{}, {}}), std::nullopt);
  EXPECT_EQ(value_of({{1, 2}, {1, 1}}), std::nullopt);
  EXPECT_EQ(value_of({{1, 2}, {0, 0}}), std::nullopt);
  Auc auc;
  auc.add(std::vector<float>{1, 2}, std::vector<std::int32_t>{0, 1});
  auc.clear();
  EXPECT_EQ(auc.value(), std::nullopt);
}

TEST(Auc, NanIsNeverAGoodScore) {
  const auto got = value_of({{NAN, 1, 2}, {0, 1, 1}});
  ASSERT_TRUE(got.has_value());
  EXPECT_TRUE(std::isnan(*got));
}

double brute_force(const std::vector<double>& p) {
  double in_order = 0, pairs = 0;
  for (const double a : p) {
    for (const double b : p) {
      pairs += a * (1 - b);
      in_order += a * (1 - b) * (a > b ? 1 : a == b ? 0.5 : 0);
    }
  }
  return in_order / pairs;
}

TEST(ExpectedAuc, IsThePairSum) {
  for (std::uint64_t stream = 0; stream < 20; ++stream) {
    Rng rng(kSeed, 100 + stream);
    std::vector<double> p(2 + stream * 11);
    for (double& v : p) v = static_cast<double>(1 + rng.below(9)) / 10;
    const double expected = brute_force(p);
    EXPECT_NEAR(expected_auc(p).value, expected, 1e-12) << "stream " << stream;
  }
  std::vector<double> same(100, 0.3);
  EXPECT_NEAR(expected_auc(same).value, 0.5, 1e-12);
  std::vector<double> sure{0, 1, 0, 1, 1};
  EXPECT_NEAR(expected_auc(sure).value, 1, 1e-12);
}

// p uniform in [0, 1]: P(p_i > p_j | clicked, not clicked) is the double integral of 2 a * 2 (1 - b) over a >
// b, 5/6. The errors of many estimates are as large as they say of themselves.
TEST(ExpectedAuc, UniformProbabilitiesAndTheirError) {
  constexpr int kTrials = 400;
  constexpr double kTrue = 5.0 / 6;
  double squares = 0;
  for (int t = 0; t < kTrials; ++t) {
    Rng rng(kSeed, 1000 + static_cast<std::uint64_t>(t));
    std::vector<double> p(500);
    for (double& v : p) v = static_cast<double>(rng.uniform());
    const ExpectedAuc got = expected_auc(p);
    const double errors = (got.value - kTrue) / got.standard_error;
    EXPECT_LE(std::abs(errors), 6) << "trial " << t;
    squares += errors * errors;
  }
  EXPECT_NEAR(std::sqrt(squares / kTrials), 1, 0.15);
}

// Samples of the same population differ by as much as is said, nearly: the formula is of another
// distribution.
TEST(AucDeviation, IsThatOfManySetsOfSamples) {
  constexpr int kTrials = 400;
  constexpr double kTrue = 5.0 / 6;
  double squares = 0;
  for (int t = 0; t < kTrials; ++t) {
    Rng rng(kSeed, 5000 + static_cast<std::uint64_t>(t));
    Samples s;
    for (int i = 0; i < 500; ++i) {
      s.scores.push_back(rng.uniform());
      s.labels.push_back(rng.uniform() < s.scores.back() ? 1 : 0);
    }
    squares += std::pow(value_of(s).value_or(0) - kTrue, 2);
  }
  const double deviation = auc_deviation(kTrue, 250, 250);
  EXPECT_NEAR(std::sqrt(squares / kTrials) / deviation, 1, 0.2) << "seed " << kSeed;
  EXPECT_NEAR(auc_deviation(kTrue, 1000, 1000) / deviation, 0.5, 0.01) << "four times as many";
  EXPECT_GT(auc_deviation(kTrue, 0, 500), 0.2) << "one positive is all that is reckoned with";
}

}  // namespace
}  // namespace paceline::data
