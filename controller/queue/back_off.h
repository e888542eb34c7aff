#pragma once

// How long to wait before the next try of each key: doubled from try to try. A value; one thread at a time;
// no clock.

#include <algorithm>
#include <map>
#include <string>

#include "base/clock.h"

namespace paceline::queue {

struct BackOffLimits {
  Duration base = std::chrono::milliseconds(5);
  Duration longest = std::chrono::seconds(30);
};

class BackOff {
 public:
  explicit BackOff(BackOffLimits limits) : limits_(limits) {}

  // base, 2 base, 4 base, ... up to `longest`.
  Duration next(const std::string& key) {
    const int failures = failures_[key]++;
    Duration wait = limits_.base;
    for (int i = 0; i < failures && wait < limits_.longest; ++i) wait *= 2;
    return std::min(wait, limits_.longest);
  }
  void forget(const std::string& key) { failures_.erase(key); }
  int failures(const std::string& key) const {
    const auto found = failures_.find(key);
    return found == failures_.end() ? 0 : found->second;
  }

 private:
  BackOffLimits limits_;
  std::map<std::string, int> failures_;  // bounded by the keys of the queue that owns it
};

}  // namespace paceline::queue
