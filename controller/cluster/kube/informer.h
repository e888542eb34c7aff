#pragma once

// Keeps an ObjectSink as the server has it: a thread that does what ReflectorCore says, one kind of objects
// each. Level-triggered: on_change names a job, never what happened.
//
// Thread-safe. Stops within 100 ms. Memory: one page of the list or one event at a time, and what the sink
// keeps.

#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/object_store.h"
#include "controller/cluster/kube/pause.h"
#include "controller/cluster/kube/reflector_core.h"

namespace paceline::kube {

class Informer {
 public:
  using OnChange = std::function<void(const std::string& job_key)>;
  // The references must outlive it. `on_change` runs in its thread, without locks, after the sink has the
  // change.
  Informer(ApiClient& api, Scope scope, ObjectSink& sink, const Clock& clock, Logger log, std::uint64_t seed,
           OnChange on_change, ReflectorLimits limits = {}, Pause pause = real_pause);
  ~Informer() = default;  // the thread is told to stop, and joined, before all else
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // Once.
  void start();
  // Ends the list or the watch under way and lists again: what another process wrote before this call, the
  // sink has when it is synced again. Not from `on_change`.
  void list_again();
  // The list is complete: what the sink has is what the server had.
  bool synced() const { return shared_.lock()->synced; }
  // DEADLINE_EXCEEDED says what is wrong, if anything is.
  absl::Status wait_synced(Duration timeout);

 private:
  struct Shared {
    bool synced = false;
    std::string trouble;  // why it waits at present; empty: all is well
  };
  void run(std::stop_token stop);
  void list(const ReflectorCore::List& action, std::stop_token stop);
  void watch(const ReflectorCore::Watch& action, std::stop_token stop);
  bool take(const WatchEvent& event);
  void publish(const ObjectSink::Keys& changed);

  ApiClient& api_;
  const Scope scope_;
  ObjectSink& sink_;
  const Clock& clock_;
  const Logger log_;
  const OnChange on_change_;
  const Pause pause_;
  ReflectorCore core_;       // the thread's
  std::uint64_t round_ = 0;  // the thread's
  mutable Guarded<Shared> shared_;
  std::jthread thread_;
};

}  // namespace paceline::kube
