#pragma once

// One job's core behind its mutex, with what is attached to it. Knows nothing of gRPC.
//
// Effects are queued under the mutex and carried out without it, in the core's order: what members are sent
// by whoever finds that queue unattended, what the observer hears likewise, so that no member waits for an
// observer. When a slow observer lets kMaxOutbox batches pile up, records are dropped and counted, and the
// rest joins the last batch.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/clock.h"
#include "controller/coordinator/core.h"
#include "controller/coordinator/observer.h"
#include "controller/coordinator/report.h"

namespace paceline::coordinator {

inline constexpr std::size_t kMaxOutbox = 1024;

struct JobConfig {
  CoreConfig core;
  std::string token;  // the job's bearer token; at least 16 characters; unique among the server's jobs
  RunObserver* observer = nullptr;  // may be null; outlives the job's close()
};

// A member's stream, as the job sees it. Thread-safe.
class Outlet {
 public:
  virtual ~Outlet() = default;
  virtual void send(v1::CoordinatorMessage message) = 0;
  // After what was sent. Idempotent.
  virtual void finish(absl::Status status) = 0;
};

class Job {
 public:
  // `leave`: no more streams are attached. Called by each close().
  Job(JobConfig config, const Clock& clock, std::function<void(const Job&)> leave = {});

  const std::string& name() const { return name_; }
  const std::string& token() const { return token_; }

  void attach(StreamId stream, std::shared_ptr<Outlet> outlet, const v1::Hello& hello);
  // Everything but Attached: what the cluster says about a pod, a member that is not to be waited for, that
  // the members are to stop (the state becomes kStopped when they have, or after `CoreConfig::stop_timeout`).
  void feed(const Input& input);
  Report report() const;
  // When a Tick may have an effect, as of the last input. Does not wait for anything.
  TimePoint due() const { return TimePoint(Duration(due_.load(std::memory_order_relaxed))); }
  // Evicts everybody (of observers the streams end: UNAVAILABLE), after what the core decided before; waits
  // until no observer call is under way. Idempotent. Not from an observer.
  void close();

 private:
  struct Outgoing {
    std::shared_ptr<Outlet> outlet;
    std::optional<v1::CoordinatorMessage> message;  // none: finish
    absl::Status end;                               // then: how
  };

  Effects step(const Input& input);  // under mutex_
  void take(Effects effects);        // likewise
  void keep(Effects effects);        // likewise: for the observer
  void send_waiting();
  void publish_waiting();
  void deliver() {
    send_waiting();
    publish_waiting();
  }
  void publish(const Effects& effects);

  const std::string name_, token_;
  RunObserver* const observer_;
  const Clock& clock_;
  const std::function<void(const Job&)> leave_;

  std::atomic<Duration::rep> due_;
  mutable std::mutex mutex_;  // guards what follows
  CoordinatorCore core_;
  std::map<StreamId, std::shared_ptr<Outlet>> outlets_;
  std::deque<Outgoing> outgoing_;  // empty within moments: an outlet takes what it is given at once
  std::deque<Effects> unpublished_;
  bool sending_ = false, publishing_ = false;
  std::condition_variable quiet_;  // neither, and nothing is outgoing
  bool closed_ = false;
  std::uint64_t dropped_ = 0;
};

}  // namespace paceline::coordinator
