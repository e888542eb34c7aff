#pragma once

// A clock that moves only when a test says so. Thread-safe.

#include <atomic>

#include "base/clock.h"

namespace paceline {

class FakeClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(Duration(elapsed_ns_.load())); }
  WallTime wall_now() const override { return WallTime(Duration(elapsed_ns_.load())); }
  void advance(Duration by) { elapsed_ns_.fetch_add(by.count()); }

 private:
  std::atomic<std::int64_t> elapsed_ns_{1'000'000'000};
};

}  // namespace paceline
