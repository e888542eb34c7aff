#pragma once

// A token bucket: `per_second` in the long run, `burst` at once. A value; one thread at a time; `now` is an
// argument and must not go back.

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"

namespace paceline::queue {

class TokenBucket {
 public:
  // Starts full. REQUIRES: per_second > 0, burst >= 1.
  TokenBucket(double per_second, int burst, TimePoint now)
      : per_second_(per_second), burst_(burst), tokens_(burst), last_(now) {
    PL_CHECK(per_second > 0 && burst >= 1, "a token bucket needs a rate and room for one token");
  }

  // Takes a token, of the future where there is none now, and says how long to wait for it.
  Duration reserve(TimePoint now) {
    const double elapsed_seconds = std::chrono::duration<double>(now - last_).count();
    tokens_ = std::min(burst_, tokens_ + elapsed_seconds * per_second_);
    last_ = now;
    tokens_ -= 1;
    if (tokens_ >= 0) return Duration::zero();
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(-tokens_ / per_second_));
  }

 private:
  double per_second_, burst_, tokens_;
  TimePoint last_;
};

}  // namespace paceline::queue
