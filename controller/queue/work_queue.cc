#include "controller/queue/work_queue.h"

#include <algorithm>
#include <utility>

namespace paceline::queue {

namespace {

constexpr Duration kLongestWait =
    std::chrono::hours(24);  // then it looks again: later moments overflow the clock

}  // namespace

WorkQueue::WorkQueue(const Clock& clock, RateLimits limits, QueueObserver* observer, Overflow overflow)
    : clock_(clock), observer_(observer), overflow_(std::move(overflow)), core_(limits, clock.now()) {}

void WorkQueue::tell_adds(std::uint64_t before, std::uint64_t after) {
  if (observer_ != nullptr && after > before) observer_->on_adds(after - before);
}

void WorkQueue::tell_refused(std::uint64_t before, std::uint64_t after) {
  if (after == before) return;
  if (observer_ != nullptr) observer_->on_refused();
  if (before == 0 && overflow_.on_full) overflow_.on_full();
}

bool WorkQueue::add(const std::string& key) {
  return add_after(key, Duration::zero());
}

bool WorkQueue::add_after(const std::string& key, Duration delay) {
  std::unique_lock lock(mutex_);
  changed_.notify_one();
  const TimePoint now = clock_.now();
  const std::uint64_t before = core_.adds(), refused_before = core_.refused();
  const bool added = !shut_down_ && core_.add_at(key, now + delay, now);
  const std::uint64_t after = core_.adds(), refused_after = core_.refused();
  lock.unlock();
  tell_adds(before, after);
  tell_refused(refused_before, refused_after);
  return added;
}

bool WorkQueue::add_rate_limited(const std::string& key, Duration at_least) {
  std::unique_lock lock(mutex_);
  changed_.notify_one();
  const std::uint64_t refused_before = core_.refused();
  const bool added = !shut_down_ && core_.add_rate_limited(key, clock_.now(), at_least);
  const std::uint64_t refused_after = core_.refused();
  lock.unlock();
  if (observer_ != nullptr) observer_->on_retry();
  tell_refused(refused_before, refused_after);
  return added;
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
      const std::uint64_t refused = core_.take_room();
      lock.unlock();
      tell_adds(before, after);
      if (observer_ != nullptr) observer_->on_taken(waited);
      if (refused > 0 && overflow_.on_room) overflow_.on_room(refused);
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
