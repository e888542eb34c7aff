#pragma once

// Workers of a parameter server in virtual time: a discrete-event simulation that drives a real policy
// (runtime/pserver/policy) with drawn delays. Pure but for its seed: the same seed gives the same events.
//
// A worker's turn takes its delay; then it commits, and everything that the policy answers happens at that
// moment: moving bytes and updating take no time here. Events of the same moment happen in the order in which
// their turns were given.

#include <cstdint>

#include "runtime/pserver/policy/policy.h"
#include "runtime/pserver/policy/staleness.h"
#include "runtime/simulation/delays.h"

namespace paceline::simulation {

// Hears of what happens, in order.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void turn(const pserver::Turn& turn) { static_cast<void>(turn); }
  virtual void dropped(const pserver::Gradient& gradient) { static_cast<void>(gradient); }
  virtual void updated(const pserver::Update& update, double now_ms) {
    static_cast<void>(update);
    static_cast<void>(now_ms);
  }
  // Asked after everything that happened at one moment. True: the simulation ends.
  virtual bool enough() { return false; }
};

struct ClusterOptions {
  int workers = 1;
  DelayModel delays;
  std::uint64_t seed = 0;
  double work = 1;  // of a gradient: its delay is multiplied by it
  // Synchronous policies alone: a worker whose gradient has become too late stops computing it at once,
  // instead of when it is done.
  bool late_workers_stop = false;
};

struct ClusterReport {
  double ms = 0;  // until the end
  Step steps = 0;
  std::int64_t updates = 0;
  std::int64_t applied = 0;  // gradients
  std::int64_t dropped = 0;  // gradients that were computed and came too late, or were given up
  double waiting = 0;        // part of the workers' time in which they computed nothing
  pserver::StalenessTally staleness;
  double step_ms() const { return steps == 0 ? 0 : ms / static_cast<double>(steps); }
  double gradients_per_ms() const { return ms == 0 ? 0 : static_cast<double>(applied) / ms; }
  // Of the gradients that were computed.
  double dropped_part() const {
    const auto all = static_cast<double>(applied + dropped);
    return all > 0 ? static_cast<double>(dropped) / all : 0;
  }
};

// Until the policy has finished, or the observer has had enough. All workers join at time 0. REQUIRES: a
// policy for so many workers, to which nothing has happened. `observer` may be null.
ClusterReport simulate(pserver::Policy& policy, const ClusterOptions& options, Observer* observer = nullptr);

}  // namespace paceline::simulation
