#include "base/clock.h"

#include <cstdio>
#include <ctime>

#include "base/text.h"

namespace paceline {

TimePoint SystemClock::now() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

WallTime SystemClock::wall_now() const {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

std::string format_wall_time(WallTime time) {
  const auto since_epoch = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch - seconds).count();
  const std::time_t t = static_cast<std::time_t>(seconds.count());
  std::tm utc{};
  gmtime_r(&t, &utc);
  char text[48];
  std::snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900, utc.tm_mon + 1,
                utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, static_cast<int>(millis));
  return text;
}

std::string format_duration(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  char text[64];
  if (seconds < 0) return str_cat("-", format_duration(-duration));
  if (seconds == 0) return "0 s";
  if (seconds < 1e-3) {
    std::snprintf(text, sizeof(text), "%.0f us", seconds * 1e6);
  } else if (seconds < 1) {
    std::snprintf(text, sizeof(text), seconds < 1e-2 ? "%.1f ms" : "%.0f ms", seconds * 1e3);
  } else if (seconds < 60) {
    std::snprintf(text, sizeof(text), "%.1f s", seconds);
  } else if (seconds < 3600) {
    const long whole = static_cast<long>(seconds);
    std::snprintf(text, sizeof(text), whole % 60 == 0 ? "%ld min" : "%ld min %ld s", whole / 60, whole % 60);
  } else {
    const long whole = static_cast<long>(seconds);
    const char* const form = whole / 60 % 60 == 0 ? "%ld h" : "%ld h %ld min";
    std::snprintf(text, sizeof(text), form, whole / 3600, whole / 60 % 60);
  }
  return text;
}

}  // namespace paceline
