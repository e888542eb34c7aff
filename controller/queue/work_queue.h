#pragma once

// A queue of keys to look at, after client-go's util/workqueue: fair (in order of arrival), stingy (a key
// that is added several times before it is taken is taken once), with delays and back-off, for several
// producers and consumers.
//
// A key that is added while it is being worked on is handed out again after done(): so one key has one worker
// at a time, without a lock per key. Thread-safe; the rules are in queue_core.h (pure), this is the lock, the
// wait and the clock.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "controller/queue/queue_core.h"

namespace paceline::queue {

// Hears what the queue does, for metrics. Calls come from the queue's callers, without locks.
class QueueObserver {
 public:
  virtual ~QueueObserver() = default;
  virtual void on_adds(std::uint64_t count) = 0;  // keys began to wait
  virtual void on_taken(Duration waited) = 0;
  virtual void on_done(Duration worked) = 0;
  virtual void on_retry() = 0;
};

class WorkQueue {
 public:
  // The clock, and the observer where there is one, must outlive the queue.
  explicit WorkQueue(const Clock& clock, RateLimits limits = {}, QueueObserver* observer = nullptr);

  // A queue that is shut down takes no keys.
  void add(const std::string& key) { add_after(key, Duration::zero()); }
  void add_after(const std::string& key, Duration delay);
  // After the key's own back-off (doubled by every call until forget()) and the shared bucket's, and not
  // before `at_least`, to which the bucket's wait is added: who are told the same time don't come at once.
  void add_rate_limited(const std::string& key, Duration at_least = Duration::zero());
  // The key went well: its back-off starts again from the beginning.
  void forget(const std::string& key);
  // How often add_rate_limited() was called since the last forget().
  int failures(const std::string& key) const;
  // Keys that wait now.
  std::size_t size() const;

  // Waits for a key, at most `timeout`. Nothing on time-out and after shut_down(). Every key must be given
  // back by done().
  std::optional<std::string> get(Duration timeout);
  void done(const std::string& key);

  // Wakes all that wait in get(); keys that are left are not handed out any more.
  void shut_down();
  bool is_shut_down() const;

 private:
  void publish_adds(std::uint64_t before, std::uint64_t after);

  const Clock& clock_;
  QueueObserver* const observer_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  QueueCore core_;          // guarded by mutex_
  bool shut_down_ = false;  // guarded by mutex_
};

}  // namespace paceline::queue
