#pragma once

// How stale a worker's gradients were: counts for heartbeats and reports. Pure.

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/pserver/policy/policy.h"

namespace paceline::pserver {

// Updates applied between a gradient's read and its own update.
inline std::int64_t staleness_of(const Update& update, const Gradient& gradient) {
  return update.version - 1 - gradient.read;
}

class StalenessTally {
 public:
  static constexpr std::size_t kBins = 32;

  void applied(std::int64_t staleness);
  void dropped() { ++dropped_; }
  void add(const StalenessTally& other);

  std::int64_t applied_count() const { return applied_; }
  std::int64_t dropped_count() const { return dropped_; }
  // [i]: applied with staleness i; the last one: that or more.
  const std::array<std::int64_t, kBins>& histogram() const { return histogram_; }
  double mean() const {
    return applied_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(applied_);
  }
  std::int64_t max() const { return max_; }

 private:
  std::int64_t applied_ = 0, dropped_ = 0, sum_ = 0, max_ = 0;
  std::array<std::int64_t, kBins> histogram_{};
};

}  // namespace paceline::pserver
