#include "controller/queue/delay_heap.h"

namespace paceline::queue {

void DelayHeap::add(const std::string& key, TimePoint due) {
  const auto [entry, fresh] = due_.try_emplace(key, due);
  if (!fresh) {
    if (entry->second <= due) return;
    order_.erase({entry->second, key});
    entry->second = due;
  }
  order_.emplace(due, key);
}

void DelayHeap::remove(const std::string& key) {
  const auto found = due_.find(key);
  if (found == due_.end()) return;
  order_.erase({found->second, key});
  due_.erase(found);
}

std::optional<std::string> DelayHeap::take(TimePoint now) {
  if (order_.empty() || order_.begin()->first > now) return std::nullopt;
  std::string key = order_.begin()->second;
  remove(key);
  return key;
}

std::optional<TimePoint> DelayHeap::next() const {
  if (order_.empty()) return std::nullopt;
  return order_.begin()->first;
}

}  // namespace paceline::queue
