#pragma once

// Who waits for whom, and which gradients count: one pure state machine per mode of a parameter server
// (docs/parameter-servers.md). The sequencer feeds it what happened; what it returns is carried out in order:
// updates, drops, turns.
//
// Invariants, for every order of events:
//  1. A unit is in at most one update, ever.
//  2. Updates are numbered 1, 2, ...; `gradients` are ordered by worker, then by unit.
//  3. A worker has at most one turn that it has not committed.
//  4. Every gradient that was committed is in one update or in one drop, unless the training has finished.
//  5. As long as a worker is there, somebody has a turn, or the training has finished: nobody waits for ever.
// One thread at a time; no errors: the caller checks what comes from outside (a commit of a worker that has
// no turn, or of another unit, breaks REQUIRES).

#include <cstdint>
#include <vector>

#include "base/ids.h"

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
  Unit next = -1;  // what it will probably be given then, so that its input can be prepared; -1: not known
};

struct Effects {
  std::vector<Update> updates;
  std::vector<Gradient> drops;
  std::vector<Turn> turns;
  bool finished = false;  // all steps are applied: no more turns
};

class Policy {
 public:
  virtual ~Policy() = default;
  // A worker that may compute. REQUIRES: it is not there.
  virtual Effects joined(int worker) = 0;
  // Its gradient lies on all servers. REQUIRES: it has the turn of `unit`.
  virtual Effects committed(int worker, Unit unit) = 0;
  // It went away; what it committed counts, what it was computing is given out again. REQUIRES: it is there.
  virtual Effects left(int worker) = 0;
  // Global batches applied.
  virtual Step step() const = 0;
};

}  // namespace paceline::pserver
