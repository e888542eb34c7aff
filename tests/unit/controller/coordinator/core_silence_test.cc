#include "controller/coordinator/core_silence.h"

#include <gtest/gtest.h>

namespace paceline::coordinator {
namespace {

using std::chrono::milliseconds;

constexpr Duration kTimeout = milliseconds(1500), kMost = milliseconds(6000);

TEST(SilenceTest, GapsForgetWhatIsLongPast) {
  Gaps gaps;
  EXPECT_EQ(gaps.largest(), Duration::zero());
  gaps.add(milliseconds(900));
  for (int i = 0; i < 7; ++i) gaps.add(milliseconds(200));
  EXPECT_EQ(gaps.largest(), milliseconds(900));
  gaps.add(milliseconds(200));
  EXPECT_EQ(gaps.largest(), milliseconds(200));
}

TEST(SilenceTest, TheLimitFollowsWhatTheOthersShowWithinBounds) {
  const struct {
    std::vector<Duration> largest;
    Duration limit;
  } cases[] = {
      {{}, kTimeout},
      {{milliseconds(0)}, kTimeout},                                           // nobody has spoken twice
      {{milliseconds(200), milliseconds(210), milliseconds(205)}, kTimeout},   // a quiet machine
      {{milliseconds(200), milliseconds(1200), milliseconds(220)}, kTimeout},  // one is late
      {{milliseconds(200), milliseconds(1200)}, kTimeout},                     // of two
      {{milliseconds(800), milliseconds(300), milliseconds(600)}, milliseconds(2400)},    // all are late
      {{milliseconds(9000), milliseconds(9000), milliseconds(9000)}, milliseconds(6000)}  // very late
  };
  for (const auto& c : cases) EXPECT_EQ(silence_limit(kTimeout, kMost, c.largest), c.limit);
  EXPECT_EQ(silence_limit(kTimeout, std::chrono::seconds(30), {std::chrono::seconds(9)}),
            std::chrono::seconds(30));
}

}  // namespace
}  // namespace paceline::coordinator
