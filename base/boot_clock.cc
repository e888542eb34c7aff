#include "base/boot_clock.h"

#include <ctime>

namespace paceline {

TimePoint BootClock::now() const {
  std::timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return TimePoint(std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec));
}

WallTime BootClock::wall_now() const {
  return SystemClock().wall_now();
}

}  // namespace paceline
