#include "controller/coordinator/core_silence.h"

#include <algorithm>

namespace paceline::coordinator {

Duration Gaps::largest() const {
  return *std::max_element(gaps_.begin(), gaps_.end());
}

Duration silence_limit(Duration timeout, Duration most, std::vector<Duration> largest) {
  if (largest.empty()) return timeout;
  // The lower median: with two others, one that is late doesn't speak for the machine.
  const auto middle = largest.begin() + static_cast<std::ptrdiff_t>((largest.size() - 1) / 2);
  std::nth_element(largest.begin(), middle, largest.end());
  return std::clamp(kGapFactor * *middle, timeout, most);
}

}  // namespace paceline::coordinator
