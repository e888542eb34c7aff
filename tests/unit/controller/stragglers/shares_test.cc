#include "controller/stragglers/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.h"

namespace paceline::stragglers {
namespace {

using Samples = std::vector<std::int64_t>;

std::int64_t sum_of(const Samples& samples) {
  return std::accumulate(samples.begin(), samples.end(), std::int64_t{0});
}

TEST(Shares, EvenOnesDifferByOneAtMost) {
  EXPECT_EQ(even_shares(256, 4), (Samples{64, 64, 64, 64}));
  EXPECT_EQ(even_shares(10, 3), (Samples{3, 4, 3}));
  EXPECT_EQ(even_shares(2, 4), (Samples{1, 0, 1, 0}));
  EXPECT_EQ(even_shares(7, 1), (Samples{7}));
}

TEST(Shares, FollowSpeed) {
  struct Case {
    std::vector<Load> loads;
    Samples samples;
  };
  const std::vector<Case> cases = {
      {{{32, 0.1}, {32, 0.2}}, {43, 21}},  // 42 2/3 and 21 1/3: the largest remainder
      {{{24, 0.1}, {24, 0.1}, {24, 0.3}, {24, 0.1}}, {29, 29, 9, 29}},
      {{{43, 0.1}, {21, 0.1}}, {43, 21}},                 // level
      {{{43, 0.15}, {21, 0.15 * 21 / 43}}, {32, 32}},     // the slow one has recovered
      {{{32, 0.1}, {32, 0.103}}, {32, 32}},               // nearly even is even
      {{{3, 0.1}, {4, 0.2}, {3, 0.1}}, {4, 2, 4}},        // 3.75, 2.5, 3.75
      {{{2, 1.0}, {2, 100.0}, {2, 1.0}}, {3, 1, 2}},      // one sample at least
      {{{10, 1.0}, {10, 30.0}, {10, 30.0}}, {20, 5, 5}},  // twice the even share at most
      {{{1, 0.1}, {1, 0.5}}, {1, 1}},                     // nothing to give
  };
  for (const Case& each : cases) EXPECT_EQ(shares_by_speed(each.loads), each.samples);
}

TEST(Shares, AddUpWithinBoundsWhateverTheSpeeds) {
  Rng rng(7, 0);
  for (int round = 0; round < 2000; ++round) {
    const int members = 1 + static_cast<int>(rng.below(40));
    const std::int64_t batch = members + static_cast<std::int64_t>(rng.below(500));
    std::vector<Load> loads;
    for (const std::int64_t samples : even_shares(batch, members))
      loads.push_back({samples, std::exp(2 * rng.normal())});
    const Samples samples = shares_by_speed(loads);
    ASSERT_EQ(samples.size(), loads.size());
    ASSERT_EQ(sum_of(samples), batch);
    const double even = static_cast<double>(batch) / members;
    for (const std::int64_t each : samples) {
      ASSERT_GE(each, 1);
      ASSERT_LE(static_cast<double>(each), std::ceil(kMostOfEven * even));
    }
  }
}

// A part of the time does not depend on samples: shares come to level times from one side.
TEST(Shares, RepeatedlySetOnesComeToLevelTimes) {
  const std::vector<double> slowness = {1, 2.5, 1, 1};
  Samples samples = even_shares(400, 4);
  double before = 0;
  for (int round = 0; round < 8; ++round) {
    std::vector<Load> loads;
    for (std::size_t i = 0; i < slowness.size(); ++i)
      loads.push_back({samples[i], slowness[i] * (0.3 + 0.007 * static_cast<double>(samples[i]))});
    const double now = longest(loads);
    if (round > 0) {
      EXPECT_LE(now, before + 1e-9);
    }
    before = now;
    samples = shares_by_speed(loads);
    if (round == 7) {
      EXPECT_GT(longest_with(loads, samples) / now, 0.98);
    }
  }
}

TEST(Shares, LongestTimeIsForeseenInProportion) {
  const std::vector<Load> loads = {{10, 1.0}, {10, 2.0}};
  EXPECT_DOUBLE_EQ(longest(loads), 2.0);
  EXPECT_DOUBLE_EQ(longest_with(loads, Samples{14, 6}), 1.4);
}

}  // namespace
}  // namespace paceline::stragglers
