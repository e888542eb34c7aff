#pragma once

// Guarded<T>: data that can be reached only through its lock (after kj::MutexGuarded).
//
//   Guarded<std::map<Key, Value>> table;
//   { auto locked = table.lock(); locked->insert(...); }        // unlocked at the end of the scope
//   table.lock_when([](const auto& t) { return !t.empty(); }, 2s)->erase(key);
//
// Never call out (callbacks, I/O, logging) while a Locked is alive.
//
// The lock is the standard library's, not abseil's: ThreadSanitizer can't see into Debian's abseil, and would
// report every use as a race.

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/clock.h"

namespace paceline {

template <typename T>
class Guarded {
 public:
  class Locked {
   public:
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;
    ~Locked() {
      // Under the lock: a waiter may destroy the Guarded as soon as it has it.
      if (guarded_->waiters_ > 0) guarded_->changed_.notify_all();
    }
    T* operator->() { return &guarded_->value_; }
    T& operator*() { return guarded_->value_; }

   private:
    friend class Guarded;
    Locked(Guarded* guarded, std::unique_lock<std::mutex> lock) : guarded_(guarded), lock_(std::move(lock)) {}
    Guarded* guarded_;
    std::unique_lock<std::mutex> lock_;
  };

  template <typename... Args>
  explicit Guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  Locked lock() { return Locked(this, std::unique_lock(mutex_)); }

  // Waits until `condition(value)` holds or `timeout` has passed, and returns with the lock held either way;
  // `held`, where it is given, tells which. Every unlocking wakes the waiters.
  template <typename Condition>
  Locked lock_when(Condition condition, Duration timeout, bool* held = nullptr) {
    std::unique_lock lock(mutex_);
    ++waiters_;
    const bool result = changed_.wait_for(lock, std::min(timeout, kLongest),
                                          [&] { return condition(static_cast<const T&>(value_)); });
    --waiters_;
    if (held != nullptr) *held = result;
    return Locked(this, std::move(lock));
  }

 private:
  static constexpr Duration kLongest = std::chrono::hours(24 * 365);  // later moments overflow the clock
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiters_ = 0;  // guarded by mutex_, as value_ is
  T value_;
};

}  // namespace paceline
