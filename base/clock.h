#pragma once

// The one door to time. Pure code takes a TimePoint as an argument; shells hold a Clock&. Thread-safe.

#include <chrono>
#include <string>

namespace paceline {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;  // monotonic, this host only
using WallTime =
    std::chrono::time_point<std::chrono::system_clock, Duration>;  // for people, never for decisions

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  virtual WallTime wall_now() const = 0;
};

// The machine's clocks. Tests use tests/support/fake_clock.h.
class SystemClock final : public Clock {
 public:
  TimePoint now() const override;
  WallTime wall_now() const override;
};

// A moment after which a wait gives up. Deadlines are absolute, so that they can be handed down through
// calls.
class Deadline {
 public:
  explicit Deadline(TimePoint at) : at_(at) {}
  static Deadline after(TimePoint now, Duration wait) { return Deadline(now + wait); }
  TimePoint at() const { return at_; }
  bool expired(TimePoint now) const { return now >= at_; }
  // Zero when expired.
  Duration remaining(TimePoint now) const { return now >= at_ ? Duration::zero() : at_ - now; }

 private:
  TimePoint at_;
};

// RFC 3339 in UTC with milliseconds: 2026-01-31T12:00:00.000Z.
std::string format_wall_time(WallTime time);

// "1.5 s", "12 ms", "3 min 20 s": for people.
std::string format_duration(Duration duration);

}  // namespace paceline
