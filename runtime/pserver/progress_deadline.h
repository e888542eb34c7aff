#pragma once

// The end of a wait that goes on while something moves: whenever something does, it is as far off again as it
// was at first. Bytes of a state that is loaded or saved, say, of which there may be any number. One thread.

#include <cstdint>

#include "base/clock.h"

namespace paceline::pserver {

class ProgressDeadline {
 public:
  // `first`: the end where nothing moves at all. REQUIRES: `clock` outlives it.
  ProgressDeadline(const Clock& clock, Deadline first)
      : clock_(clock), limit_(first.remaining(clock.now())), deadline_(first) {}
  // From a moment that has been, when so much was counted.
  ProgressDeadline(const Clock& clock, TimePoint from, Duration limit, std::uint64_t counted)
      : clock_(clock), limit_(limit), deadline_(Deadline::after(from, limit)), counted_(counted) {}

  void moved() { deadline_ = Deadline::after(clock_.now(), limit_); }
  // What is counted so far; another number than before: it has moved.
  void count(std::uint64_t so_far) {
    if (so_far != counted_) moved();
    counted_ = so_far;
  }

  Deadline deadline() const { return deadline_; }
  bool expired() const { return deadline_.expired(clock_.now()); }
  Duration left() const { return deadline_.remaining(clock_.now()); }
  Duration limit() const { return limit_; }
  // Since something moved, or since it began.
  Duration idle() const { return clock_.now() - (deadline_.at() - limit_); }

 private:
  const Clock& clock_;
  const Duration limit_;
  Deadline deadline_;
  std::uint64_t counted_ = 0;
};

}  // namespace paceline::pserver
