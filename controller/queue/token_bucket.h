#pragma once

// A token bucket: `per_second` in the long run, `burst` at once. A value; one thread at a time; `now` is an
// argument and must not go back.

#include "base/clock.h"

namespace paceline::queue {

class TokenBucket {
 public:
  // Starts full. REQUIRES: per_second > 0, burst >= 1.
  TokenBucket(double per_second, int burst, TimePoint now);

  // Takes a token, of the future where there is none now, and says how long to wait for it.
  Duration reserve(TimePoint now);

 private:
  double per_second_, burst_, tokens_;
  TimePoint last_;
};

}  // namespace paceline::queue
