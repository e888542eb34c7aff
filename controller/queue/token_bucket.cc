#include "controller/queue/token_bucket.h"

#include <algorithm>

#include "base/check.h"

namespace paceline::queue {

TokenBucket::TokenBucket(double per_second, int burst, TimePoint now)
    : per_second_(per_second), burst_(burst), tokens_(burst), last_(now) {
  PL_CHECK(per_second > 0 && burst >= 1, "a token bucket needs a rate and room for one token");
}

Duration TokenBucket::reserve(TimePoint now) {
  const double elapsed_seconds = std::chrono::duration<double>(now - last_).count();
  tokens_ = std::min(burst_, tokens_ + elapsed_seconds * per_second_);
  last_ = now;
  tokens_ -= 1;
  if (tokens_ >= 0) return Duration::zero();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(-tokens_ / per_second_));
}

}  // namespace paceline::queue
