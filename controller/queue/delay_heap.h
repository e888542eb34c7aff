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
  void add(const std::string& key, TimePoint due) {
    const auto [entry, fresh] = due_.try_emplace(key, due);
    if (!fresh) {
      if (entry->second <= due) return;
      order_.erase({entry->second, key});
      entry->second = due;
    }
    order_.emplace(due, key);
  }
  void remove(const std::string& key) {
    const auto found = due_.find(key);
    if (found == due_.end()) return;
    order_.erase({found->second, key});
    due_.erase(found);
  }
  // A key that is due, the earliest first.
  std::optional<std::string> take(TimePoint now) {
    if (order_.empty() || order_.begin()->first > now) return std::nullopt;
    std::string key = order_.begin()->second;
    remove(key);
    return key;
  }
  std::optional<TimePoint> next() const {
    return order_.empty() ? std::nullopt : std::optional(order_.begin()->first);
  }
  std::size_t size() const { return due_.size(); }

 private:
  std::set<std::pair<TimePoint, std::string>> order_;
  std::map<std::string, TimePoint> due_;
};

}  // namespace paceline::queue
