#include "controller/stragglers/series.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace paceline::stragglers {
namespace {

constexpr double kFactor = 1.15, kWidth = 0.05;

// Blocks until it is slow, `most` at most.
int blocks_until_slow(Series& series, double value, double threshold, int most) {
  for (int block = 1; block <= most; ++block) {
    series.add(value, kWidth, threshold);
    if (series.slow()) return block;
  }
  return most + 1;
}

TEST(Series, LastingChangeIsFoundAfterThresholdOverMostStepBlocks) {
  Series series(kFactor);
  const double threshold = threshold_of(4);
  EXPECT_EQ(blocks_until_slow(series, std::log(2.0), threshold, 100),
            static_cast<int>(std::ceil(threshold / kMostStep)));
}

TEST(Series, PauseMovesItOnce) {
  Series series(kFactor);
  const double threshold = threshold_of(4);
  for (int i = 0; i < 1000; ++i) {
    series.add(i % 4 == 0 ? std::log(1000.0) : 0, kWidth, threshold);
    ASSERT_FALSE(series.suspect()) << i;
  }
}

TEST(Series, FindingTakesAsMuchEvidenceToBeCleared) {
  Series series(kFactor);
  const double threshold = threshold_of(4);
  const int found = blocks_until_slow(series, std::log(2.0), threshold, 100);
  for (int block = 1; block < found; ++block) {
    series.add(0, kWidth, threshold);
    EXPECT_TRUE(series.slow()) << block;
  }
  series.add(0, kWidth, threshold);
  EXPECT_FALSE(series.slow());
  EXPECT_FALSE(series.rises());
}

TEST(Series, MoreMembersTakeMoreEvidence) {
  EXPECT_DOUBLE_EQ(threshold_of(1), kSurprise);
  EXPECT_NEAR(threshold_of(1000) - threshold_of(10), std::log(100.0), 1e-9);
}

TEST(Noise, WidthIsThatOfNormalValues) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed, 0);
  double sum = 0;
  constexpr int kTimes = 100;
  for (int time = 0; time < kTimes; ++time) {
    Noise noise;
    for (int i = 0; i < 65; ++i) noise.add(0.1 * rng.normal());
    sum += noise.width();
  }
  EXPECT_NEAR(sum / kTimes, 0.1, 0.01);
}

TEST(Noise, LastingChangeDoesNotWidenIt) {
  Noise noise;
  for (int i = 0; i < 60; ++i) noise.add((i % 2 == 0 ? 0.01 : 0) + (i < 30 ? 0 : 1));
  EXPECT_LT(noise.width(), 0.02);
}

TEST(Noise, FewValuesSayNothing) {
  Noise noise;
  for (std::size_t i = 0; i < Noise::kFew; ++i) {
    EXPECT_FALSE(noise.is_known());
    EXPECT_EQ(noise.width(), 0);
    noise.add(static_cast<double>(i));
  }
  noise.add(0);
  EXPECT_TRUE(noise.is_known());
}

}  // namespace
}  // namespace paceline::stragglers
