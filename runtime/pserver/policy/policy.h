#pragma once

// Who waits for whom, and which gradients count: one pure state machine per mode of a parameter server
// (docs/parameter-servers.md). The sequencer feeds it what happened; what it returns is carried out in order:
// updates, drops, turns.
//
// Workers are numbered 0 to N-1, and every one is expected until it has joined or left; the modes that wait
// for all wait for those that are expected, too.
//
// Invariants, for every order of events:
//  1. A unit is in at most one update, ever.
//  2. Updates are numbered 1, 2, ...; `gradients` are ordered by worker, then by unit.
//  3. A worker has at most one turn that it has not committed.
//  4. Every gradient that was committed is in one update or in one drop, unless the training has finished.
//  5. As long as a worker is there and none is expected, somebody has a turn, or the training has finished:
//     nobody waits for ever. But for the synchronous mode that needs everybody: it waits for who went away.
//  6. A worker has at most one gradient that was committed and is not in an update, but in the synchronous
//     mode with spare workers where fewer are left than an update needs gradients: there some have several.
// Memory: O(workers). One thread at a time; no errors: the caller checks what comes from outside (a commit of
// a worker that has no turn, or of another unit, breaks REQUIRES).

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "proto/paceline/v1/training.pb.h"

namespace paceline::pserver {

using Unit = std::int64_t;     // the samples of one gradient; from 0
using Version = std::int64_t;  // updates that are in the weights

struct Gradient {
  int worker = 0;
  Unit unit = 0;
  Version read = 0;  // the version that it was computed with
  bool operator==(const Gradient&) const = default;
};

// One optimiser step: the sum of the gradients, times `scale`.
struct Update {
  Version version = 0;  // that it makes
  std::vector<Gradient> gradients;
  double scale = 1;
};

// `worker` reads the weights at version `read` or later, and computes `unit`.
struct Turn {
  int worker = 0;
  Unit unit = 0;
  Version read = 0;
  Unit next =
      -1;  // what it will most probably be given then, so that its input can be prepared; -1: not known
};

struct Effects {
  std::vector<Update> updates;
  std::vector<Gradient> drops;
  std::vector<Turn> turns;
  bool finished = false;  // all steps are applied: no more turns
};

// Which units are in the weights: all below `below`, but for `missing` (rising). At most as many are missing
// as are given out, so that this stays small however slow one worker is.
struct UnitsApplied {
  std::int64_t units_per_step = 0;  // what the numbers mean: unit u is part of step u / units_per_step
  Unit below = 0;
  std::vector<Unit> missing;
  std::int64_t count() const { return below - static_cast<std::int64_t>(missing.size()); }
  bool operator==(const UnitsApplied&) const = default;
};

// Where a policy begins. `units` counts where it has this job's units_per_step and is what `step` steps of
// this mode apply; else (units of all-reduce, or of another number of workers) it is all units of the steps
// before `step`.
struct PolicyStart {
  UnitsApplied units;
  Step step = 0;         // global batches applied
  Step total_steps = 0;  // where the training ends
};

class Policy {
 public:
  virtual ~Policy() = default;
  // A worker that may compute. REQUIRES: it is not there.
  virtual Effects joined(int worker) = 0;
  // Its gradient lies on all servers. REQUIRES: it has the turn of `unit`.
  virtual Effects committed(int worker, Unit unit) = 0;
  // It went away; what it committed counts, what it was computing is given out again. It may join again.
  // REQUIRES: it is there, or it is expected and will not come.
  virtual Effects left(int worker) = 0;
  // Global batches applied.
  virtual Step step() const = 0;
  // What is in the weights now: for checkpoints.
  virtual UnitsApplied units() const = 0;
};

// The policy of a job's mode, one file each: synchronous.cc, asynchronous.cc, bounded_staleness.cc.
// INVALID_ARGUMENT names the field that makes no mode, with what is allowed.
absl::StatusOr<std::unique_ptr<Policy>> make_policy(const v1::ParameterServerSpec& spec,
                                                    const PolicyStart& start);

// What a mode may make a server hold of a worker beside the gradient that arrives.
struct ModeHolds {
  bool older_weights = true;  // it still reads them when the next version is made
  bool put_aside = true;      // a gradient waits for its update while the worker computes the next
};
ModeHolds holds_of(const v1::ParameterServerSpec& spec);

}  // namespace paceline::pserver
