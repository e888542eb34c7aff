#pragma once

// The work queue's rules, without threads or clock. One thread at a time; `now` is an argument and must not
// go back. It holds a key at most twice (waiting, delayed), so the keys that there are bound it.
//
// Invariant: a key in `order_` is in `dirty_` and not in `processing_`; a key in `dirty_` is in `order_`, or
// in `processing_`.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "controller/queue/back_off.h"
#include "controller/queue/delay_heap.h"
#include "controller/queue/token_bucket.h"

namespace paceline::queue {

struct RateLimits {
  BackOffLimits back_off;
  double per_second = 10;  // of all keys together, where they are rate limited
  int burst = 100;
};

class QueueCore {
 public:
  QueueCore(RateLimits limits, TimePoint now);

  void add(const std::string& key, TimePoint now);
  void add_at(const std::string& key, TimePoint at, TimePoint now);
  void add_rate_limited(const std::string& key, TimePoint now, Duration at_least = Duration::zero());
  void forget(const std::string& key) { back_off_.forget(key); }
  int failures(const std::string& key) const { return back_off_.failures(key); }

  // Takes the next key that is due. It is being worked on until done().
  std::optional<std::string> take(TimePoint now);
  // When it was taken.
  TimePoint done(const std::string& key);
  // How long a key that is being worked on had waited.
  Duration waited(const std::string& key) const { return processing_.at(key).waited; }
  // How often a key that was not waiting began to.
  std::uint64_t adds() const { return adds_; }

  // When the earliest delayed key is due; nothing where none is delayed.
  std::optional<TimePoint> next_due() const { return delayed_.next(); }
  std::size_t size() const { return order_.size(); }
  bool invariant_holds() const;

 private:
  std::deque<std::string> order_;
  struct Work {
    Duration waited{};
    TimePoint taken;
  };
  std::map<std::string, TimePoint> dirty_;  // since when
  std::map<std::string, Work> processing_;
  std::uint64_t adds_ = 0;
  DelayHeap delayed_;
  BackOff back_off_;
  TokenBucket bucket_;
};

}  // namespace paceline::queue
