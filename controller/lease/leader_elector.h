#pragma once

// Runs the election (election_core.h) in a thread of its own, and watches in a second one that a leader whose
// renewal hangs gives up in time.
//
// Thread-safe. Callbacks come from its threads, without locks: on_leading() at most once, then on_lost() at
// most once; the program is expected to end then, at once: what it began as the leader can't be taken back.
// For the log: on_holder() tells of every other holder, on_trouble() why the lease can't be read or written,
// once for each reason until a try works again.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/rng.h"
#include "controller/lease/election_core.h"
#include "controller/lease/lease_store.h"

namespace paceline::lease {

struct ElectionCallbacks {
  std::function<void()> on_leading;
  std::function<void(const std::string& reason)> on_lost;
  std::function<void(const std::string& identity, const std::string& address)> on_holder;
  std::function<void(const std::string& why)> on_trouble;
};

class LeaderElector {
 public:
  // Waits; false: `stop` was requested.
  using Pause = std::function<bool(Duration time, std::stop_token stop)>;

  // REQUIRES: config_error(config) is empty. The references must outlive it.
  LeaderElector(ElectionConfig config, LeaseStore& store, const Clock& clock, std::uint64_t seed, Pause pause,
                ElectionCallbacks callbacks);
  // Without a release: the next leader has to wait.
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void start();  // once
  bool leads() const;
  // Ends the election; a leader gives the lease back, so whatever only a leader may do must have ended. No
  // callback comes afterwards. Not from a callback.
  absl::Status release();

 private:
  struct Shared {
    ElectionCore core;
    bool leading = false, over = false;
    std::string told_holder, told_trouble;
    explicit Shared(ElectionConfig config) : core(std::move(config)) {}
  };
  void end();
  void run(const std::stop_token& stop);
  void watch(const std::stop_token& stop);
  void after(absl::Status status);
  void publish();
  void lose(const std::string& reason);

  LeaseStore& store_;
  const Clock& clock_;
  const Pause pause_;
  const ElectionCallbacks callbacks_;
  Rng rng_;  // run()'s
  mutable Guarded<Shared> shared_;
  std::mutex watch_mutex_;  // for wake_, which only a stop wakes
  std::condition_variable_any wake_;
  std::jthread runner_, watcher_;
};

}  // namespace paceline::lease
