#pragma once

// Keys that become due later; each at most once, at the earliest of its times. A value; one thread at a time;
// no clock. Cost: O(log n) each.

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"

namespace paceline::queue {

class DelayHeap {
 public:
  // A key that waits already keeps the earlier time.
  void add(const std::string& key, TimePoint due);
  void remove(const std::string& key);
  // A key that is due, the earliest first.
  std::optional<std::string> take(TimePoint now);
  std::optional<TimePoint> next() const;
  std::size_t size() const { return due_.size(); }

 private:
  std::set<std::pair<TimePoint, std::string>> order_;
  std::map<std::string, TimePoint> due_;
};

}  // namespace paceline::queue
