#pragma once

// What the workers of a measurement saw, made into the report that the simulation makes of the same thing
// (runtime/simulation/virtual_cluster.h), so that both can be held against each other. Pure: moments are
// arguments, all of one clock.

#include <cstdint>
#include <span>
#include <type_traits>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/policy/staleness.h"
#include "runtime/simulation/virtual_cluster.h"

namespace bench {

// Of one worker, from its first turn to the word that the training has ended.
struct WorkerRecord {
  paceline::TimePoint first_turn, finished;
  paceline::Duration computed{};  // in all turns but the last one
  // The last turn's: what of it lies beyond the end does not count, and a gradient that was committed then
  // was not dropped as too late for its step.
  paceline::TimePoint last_from, last_until;
  bool last_dropped = false;
  paceline::Step steps = 0;
  std::int64_t updates = 0, gradients = 0;  // applied, of all workers
  paceline::pserver::StalenessTally staleness;
};
static_assert(std::is_trivially_copyable_v<WorkerRecord>, "processes share them");

// Told by its worker, in this order: turn, computed, turn, computed, ..., turn with `finished`.
class WorkerTally {
 public:
  void turn(const paceline::pserver::TurnResult& turn, paceline::TimePoint now);
  void computed(paceline::TimePoint now);
  const WorkerRecord& record() const { return record_; }

 private:
  bool began_ = false, has_last_ = false;
  WorkerRecord record_;
};

// From the first turn of any worker until the first has heard of the end. REQUIRES: at least one. INTERNAL:
// they disagree over what was applied; it says who and what.
absl::StatusOr<paceline::simulation::ClusterReport> together(std::span<const WorkerRecord> workers);

}  // namespace bench
