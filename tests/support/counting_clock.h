#pragma once

// The machine's time, and how often it was asked for: whoever waits in a loop asks every time. Thread-safe.

#include <atomic>

#include "base/clock.h"

namespace paceline {

class CountingClock final : public Clock {
 public:
  TimePoint now() const override {
    ++count_;
    return clock_.now();
  }
  WallTime wall_now() const override { return clock_.wall_now(); }
  int count() const { return count_; }

 private:
  SystemClock clock_;
  mutable std::atomic<int> count_{0};
};

}  // namespace paceline
