#include "controller/queue/queue_core.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace paceline::queue {

QueueCore::QueueCore(RateLimits limits, TimePoint now)
    : back_off_(limits.back_off), bucket_(limits.per_second, limits.burst, now) {}

void QueueCore::add(const std::string& key, TimePoint now) {
  if (!dirty_.emplace(key, now).second) return;
  ++adds_;
  if (!processing_.contains(key)) order_.push_back(key);
}

void QueueCore::add_at(const std::string& key, TimePoint at, TimePoint now) {
  if (at <= now) {
    add(key, now);
  } else {
    delayed_.add(key, at);
  }
}

void QueueCore::add_rate_limited(const std::string& key, TimePoint now, Duration at_least) {
  const Duration wait = std::max(back_off_.next(key), at_least + bucket_.reserve(now));
  add_at(key, now + wait, now);
}

std::optional<std::string> QueueCore::take(TimePoint now) {
  while (std::optional<std::string> due = delayed_.take(now)) add(*due, now);
  if (order_.empty()) return std::nullopt;
  std::string key = std::move(order_.front());
  order_.pop_front();
  const auto since = dirty_.find(key);
  processing_[key] = {now - since->second, now};
  dirty_.erase(since);
  return key;
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
