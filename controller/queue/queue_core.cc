#include "controller/queue/queue_core.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace paceline::queue {

QueueCore::QueueCore(RateLimits limits, TimePoint now)
    : most_keys_(limits.most_keys),
      back_off_(limits.back_off),
      bucket_(limits.per_second, limits.burst, now) {}

bool QueueCore::add(const std::string& key, TimePoint now) {
  if (dirty_.contains(key)) return true;
  if (dirty_.size() >= most_keys_) return ++refused_, false;
  dirty_.emplace(key, now);
  ++adds_;
  if (!processing_.contains(key)) order_.push_back(key);
  return true;
}

bool QueueCore::add_at(const std::string& key, TimePoint at, TimePoint now) {
  if (at <= now) return add(key, now);
  if (delayed_.size() >= most_keys_ && !delayed_.contains(key)) return ++refused_, false;
  delayed_.add(key, at);
  return true;
}

bool QueueCore::add_rate_limited(const std::string& key, TimePoint now, Duration at_least) {
  if (delayed_.size() >= most_keys_ && !delayed_.contains(key)) return ++refused_, false;
  const Duration wait = std::max(back_off_.next(key), at_least + bucket_.reserve(now));
  return add_at(key, now + wait, now);
}

std::optional<std::string> QueueCore::take(TimePoint now) {
  while (dirty_.size() < most_keys_) {
    std::optional<std::string> due = delayed_.take(now);
    if (!due) break;
    add(*due, now);
  }
  if (order_.empty()) return std::nullopt;
  std::string key = std::move(order_.front());
  order_.pop_front();
  const auto since = dirty_.find(key);
  processing_[key] = {now - since->second, now};
  dirty_.erase(since);
  return key;
}

std::uint64_t QueueCore::take_room() {
  if (dirty_.size() > most_keys_ / 2) return 0;
  return std::exchange(refused_, 0);
}

TimePoint QueueCore::done(const std::string& key) {
  const auto work = processing_.find(key);
  PL_CHECK(work != processing_.end(), "done() is for a key that take() handed out");
  const TimePoint taken = work->second.taken;
  processing_.erase(work);
  if (dirty_.contains(key)) order_.push_back(key);
  return taken;
}

bool QueueCore::invariant_holds() const {
  for (const std::string& key : order_) {
    if (!dirty_.contains(key) || processing_.contains(key)) return false;
  }
  return std::ranges::all_of(dirty_, [&](const auto& entry) {
    const std::string& key = entry.first;
    return processing_.contains(key) || std::ranges::count(order_, key) == 1;
  });
}

}  // namespace paceline::queue
