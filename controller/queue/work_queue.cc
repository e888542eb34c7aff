#include "controller/queue/work_queue.h"

#include <algorithm>

namespace paceline::queue {

namespace {

constexpr Duration kLongestWait =
    std::chrono::hours(24);  // then it looks again: later moments overflow the clock

}  // namespace

WorkQueue::WorkQueue(const Clock& clock, RateLimits limits, QueueObserver* observer)
    : clock_(clock), observer_(observer), core_(limits, clock.now()) {}

void WorkQueue::publish_adds(std::uint64_t before, std::uint64_t after) {
  if (observer_ != nullptr && after > before) observer_->on_adds(after - before);
}

void WorkQueue::add_after(const std::string& key, Duration delay) {
  std::unique_lock lock(mutex_);
  if (shut_down_) return;
  changed_.notify_one();
  const TimePoint now = clock_.now();
  const std::uint64_t before = core_.adds();
  core_.add_at(key, now + delay, now);
  const std::uint64_t after = core_.adds();
  lock.unlock();
  publish_adds(before, after);
}

void WorkQueue::add_rate_limited(const std::string& key, Duration at_least) {
  std::unique_lock lock(mutex_);
  if (shut_down_) return;
  changed_.notify_one();
  core_.add_rate_limited(key, clock_.now(), at_least);
  lock.unlock();
  if (observer_ != nullptr) observer_->on_retry();
}

void WorkQueue::forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  core_.forget(key);
}

int WorkQueue::failures(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return core_.failures(key);
}

std::size_t WorkQueue::size() const {
  const std::lock_guard lock(mutex_);
  return core_.size();
}

std::optional<std::string> WorkQueue::get(Duration timeout) {
  std::unique_lock lock(mutex_);
  const Deadline deadline = Deadline::after(clock_.now(), timeout);
  while (!shut_down_) {
    const TimePoint now = clock_.now();
    const std::uint64_t before = core_.adds();
    if (std::optional<std::string> key = core_.take(now)) {
      // One signal may stand for several keys: hand it on.
      if (core_.size() > 0) changed_.notify_one();
      const std::uint64_t after = core_.adds();
      const Duration waited = core_.waited(*key);
      lock.unlock();
      publish_adds(before, after);
      if (observer_ != nullptr) observer_->on_taken(waited);
      return key;
    }
    if (deadline.expired(now)) break;
    Duration wait = deadline.remaining(now);
    if (const auto due = core_.next_due()) wait = std::min(wait, *due - now);
    changed_.wait_for(lock, std::min(wait, kLongestWait));
  }
  return std::nullopt;
}

void WorkQueue::done(const std::string& key) {
  std::unique_lock lock(mutex_);
  const Duration worked = clock_.now() - core_.done(key);
  changed_.notify_one();
  lock.unlock();
  if (observer_ != nullptr) observer_->on_done(worked);
}

void WorkQueue::shut_down() {
  const std::lock_guard lock(mutex_);
  shut_down_ = true;
  changed_.notify_all();
}

bool WorkQueue::is_shut_down() const {
  const std::lock_guard lock(mutex_);
  return shut_down_;
}

}  // namespace paceline::queue
