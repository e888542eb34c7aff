#include "runtime/member/trouble.h"

#include <gtest/gtest.h>

namespace paceline::member {
namespace {

using namespace std::chrono_literals;

TEST(TroubleTest, IsToldAtOnceAndThenAtGrowingIntervals) {
  Trouble trouble;
  std::vector<Duration> told;
  for (Duration at = 0s; at <= 10min; at += 100ms) {
    if (trouble.is_due("refused", TimePoint(at))) told.push_back(at);
  }
  EXPECT_EQ(told, (std::vector<Duration>{0s, 5s, 15s, 35s, 75s, 155s, 275s, 395s, 515s}));
}

TEST(TroubleTest, AnotherOneIsToldAtOnceButNoFlood) {
  Trouble trouble;
  std::size_t told = 0;
  for (int i = 0; i < 100; ++i) {
    for (int again = 0; again < 3; ++again) told += trouble.is_due(std::to_string(i), TimePoint(1s)) ? 1 : 0;
  }
  EXPECT_EQ(told, kMostTroubles);
}

}  // namespace
}  // namespace paceline::member
