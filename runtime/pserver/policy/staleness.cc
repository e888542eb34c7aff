#include "runtime/pserver/policy/staleness.h"

#include <algorithm>

#include "base/check.h"

namespace paceline::pserver {

void StalenessTally::applied(std::int64_t staleness) {
  PL_CHECK(staleness >= 0, "a gradient is applied after it was read");
  ++applied_;
  sum_ += staleness;
  max_ = std::max(max_, staleness);
  ++histogram_[std::min(static_cast<std::size_t>(staleness), kBins - 1)];
}

void StalenessTally::add(const StalenessTally& other) {
  applied_ += other.applied_;
  dropped_ += other.dropped_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  for (std::size_t i = 0; i < kBins; ++i) histogram_[i] += other.histogram_[i];
}

}  // namespace paceline::pserver
