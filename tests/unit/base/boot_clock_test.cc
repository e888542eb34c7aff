#include "base/boot_clock.h"

#include <gtest/gtest.h>

#include <ctime>

namespace paceline {
namespace {

TEST(BootClockTest, IsTheOneThatASuspendDoesNotStop) {
  const auto kernel = [] {
    std::timespec time{};
    EXPECT_EQ(::clock_gettime(CLOCK_BOOTTIME, &time), 0);
    return TimePoint(std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec));
  };
  const TimePoint before = kernel(), now = BootClock().now(), after = kernel();
  EXPECT_LE(before, now);
  EXPECT_LE(now, after);
}

}  // namespace
}  // namespace paceline
