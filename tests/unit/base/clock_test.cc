#include "base/clock.h"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

TEST(ClockTest, DeadlineCountsDownAndStopsAtZero) {
  FakeClock clock;
  const Deadline deadline = Deadline::after(clock.now(), 10ms);
  EXPECT_EQ(deadline.remaining(clock.now()), 10ms);
  clock.advance(4ms);
  EXPECT_EQ(deadline.remaining(clock.now()), 6ms);
  EXPECT_FALSE(deadline.expired(clock.now()));
  clock.advance(6ms);
  EXPECT_TRUE(deadline.expired(clock.now()));
  clock.advance(1s);
  EXPECT_EQ(deadline.remaining(clock.now()), Duration::zero());
}

TEST(ClockTest, SystemClockDoesNotGoBack) {
  SystemClock clock;
  TimePoint last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const TimePoint now = clock.now();
    EXPECT_GE(now, last);
    last = now;
  }
}

TEST(ClockTest, WallTimeIsRfc3339) {
  EXPECT_EQ(format_wall_time(WallTime(1'700'000'000'123ms)), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(format_wall_time(WallTime(0ms)), "1970-01-01T00:00:00.000Z");
}

TEST(ClockTest, DurationsForPeople) {
  EXPECT_EQ(format_duration(12us), "12 us");
  EXPECT_EQ(format_duration(1500us), "1.5 ms");
  EXPECT_EQ(format_duration(120ms), "120 ms");
  EXPECT_EQ(format_duration(1500ms), "1.5 s");
  EXPECT_EQ(format_duration(0s), "0 s");
  EXPECT_EQ(format_duration(200s), "3 min 20 s");
  EXPECT_EQ(format_duration(300s), "5 min");
  EXPECT_EQ(format_duration(3700s), "1 h 1 min");
  EXPECT_EQ(format_duration(7230s), "2 h");
  EXPECT_EQ(format_duration(-2s), "-2.0 s");
}

}  // namespace
}  // namespace paceline
