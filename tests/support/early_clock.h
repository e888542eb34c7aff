#pragma once

// The machine's clock, ahead by what the test says, for what waits in threads of its own. A test that must
// know that a thread has come so far lets it be watched. Thread-safe.

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/guarded.h"

namespace paceline {

class EarlyClock final : public Clock {
 public:
  EarlyClock() : clock_(machines_) {}
  // Ahead of another one, that may stand still. It outlives this.
  explicit EarlyClock(const Clock& clock) : clock_(clock) {}

  TimePoint now() const override {
    auto seen = seen_.lock();
    const TimePoint now = clock_.now() + seen->ahead;
    if (seen->thread != std::this_thread::get_id()) return now;
    seen->newest = now;
    ++seen->looks;
    return now;
  }
  WallTime wall_now() const override { return clock_.wall_now(); }
  void go_on_by(Duration time) { seen_.lock()->ahead += time; }

  // That thread watches itself, and says when it is done.
  void watch_this_thread() { seen_.lock()->thread = std::this_thread::get_id(); }
  void thread_is_done() { seen_.lock()->done = true; }
  // Waits until it has asked for the time so often.
  void wait_until_asked(int times) {
    (void)seen_.lock_when([times](const Seen& seen) { return seen.done || seen.looks >= times; },
                          std::chrono::minutes(1));
  }
  // Waits until it has seen that moment; false: it is done before.
  bool wait_until_seen(TimePoint moment) {
    const auto over = [moment](const Seen& seen) { return seen.done || seen.newest >= moment; };
    return !seen_.lock_when(over, std::chrono::minutes(1))->done;
  }

 private:
  struct Seen {
    std::thread::id thread;
    TimePoint newest{};  // that the watched thread was told
    Duration ahead{};
    int looks = 0;
    bool done = false;
  };
  const SystemClock machines_;
  const Clock& clock_;
  mutable Guarded<Seen> seen_;
};

}  // namespace paceline
