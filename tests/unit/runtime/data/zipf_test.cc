#include "runtime/data/zipf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace paceline::data {
namespace {

constexpr std::uint64_t kSeed = 20261121;

struct Case {
  std::int64_t size;
  double exponent;
};

class Distributions : public ::testing::TestWithParam<Case> {};

// Counts of the first values, and of all behind them together, against their chances: each within five
// standard deviations.
TEST_P(Distributions, FrequenciesAreTheFormulas) {
  constexpr std::int64_t kDraws = 200'000;
  constexpr std::size_t kShown = 20;
  const auto [size, exponent] = GetParam();
  const Zipf zipf(size, exponent);
  Rng rng(kSeed, static_cast<std::uint64_t>(size));
  std::vector<std::int64_t> counts(kShown + 1);
  for (std::int64_t i = 0; i < kDraws; ++i) {
    const std::int64_t value = zipf.draw(rng);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, size);
    ++counts[std::min<std::size_t>(static_cast<std::size_t>(value), kShown)];
  }
  double total = 0;  // an oracle of its own where the sum is short, the sum of a long one is within 1e-9
  for (std::int64_t k = size; k >= 1; --k) total += std::pow(static_cast<double>(k), -exponent);
  EXPECT_NEAR(zipf.chance_of_first() * total, 1, 1e-6);
  double rest = 1;
  for (std::size_t k = 0; k <= kShown; ++k) {
    const double chance = k == kShown ? rest
                          : k < static_cast<std::size_t>(size)
                              ? std::pow(static_cast<double>(k + 1), -exponent) / total
                              : 0;
    rest -= chance;
    const double deviation = std::sqrt(kDraws * std::abs(chance) * (1 - chance));
    EXPECT_LE(std::abs(static_cast<double>(counts[k]) - kDraws * chance), 5 * deviation + 1e-3)
        << "value " << k << ", seed " << kSeed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Distributions,
                         ::testing::Values(Case{1, 1.1}, Case{2, 1}, Case{10, 0}, Case{10, 1},
                                           Case{1000, 0.5}, Case{1000, 1.05}, Case{10'000'000, 1.1},
                                           Case{10'000'000, 1}, Case{100, 4}));

TEST(Zipf, TheLargestVocabularyReachesItsEnd) {
  const Zipf zipf(std::int64_t{1} << 31, 0);
  Rng rng(kSeed, 1);
  std::int64_t largest = 0;
  for (int i = 0; i < 10'000; ++i) largest = std::max(largest, zipf.draw(rng));
  EXPECT_GT(largest, (std::int64_t{1} << 31) / 100 * 99);
  EXPECT_LT(largest, std::int64_t{1} << 31);
}

}  // namespace
}  // namespace paceline::data
