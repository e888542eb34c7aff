#pragma once

// Who is there, and who computes which unit: what all modes have in common. Pure.
//
// A worker that gets a turn has its next unit kept for it, so that its input can be prepared meanwhile. The
// unit that is kept is the same part of the next step, where that is near and free (so that workers that keep
// pace always compute the same part), else the lowest that is free. When no other unit is left, what is kept
// for one worker is given to another: it does not lie there while somebody could compute it.

#include <cstddef>
#include <optional>
#include <set>
#include <vector>

#include "runtime/pserver/policy/policy.h"
#include "runtime/pserver/policy/unit_pool.h"

namespace paceline::pserver {

class Turns {
 public:
  // REQUIRES: start.units are those of this job (make_policy() sees to it).
  Turns(int workers, std::int64_t units_per_step, const PolicyStart& start);

  // ---- who is there ----
  void join(int worker);
  // What it computes and what is kept for it is free again. True where it was there, false where expected.
  bool leave(int worker);
  bool is_there(int worker) const { return at(worker).presence == Presence::kThere; }
  int expected() const { return expected_; }  // workers that have neither joined nor left
  int running() const { return running_; }    // turns whose gradient can still count

  // ---- turns ----
  // A turn of a unit below `below` (and of the training), reading version `read`; nothing where no such unit
  // is left. REQUIRES: the worker is there and has no turn.
  std::optional<Turn> give(int worker, Version read, Unit below);
  struct Committed {
    Gradient gradient;
    bool late = false;  // its unit was given out again
  };
  // Ends a turn. The unit stays out, but for a late one. REQUIRES: the worker has the turn of `unit`.
  Committed commit(int worker, Unit unit);
  // All units that are being computed are free again: their gradients come too late.
  void all_are_late();

  UnitPool& pool() { return pool_; }
  const UnitPool& pool() const { return pool_; }
  bool all_applied() const { return pool_.applied_count() >= pool_.limit(); }

 private:
  enum class Presence : std::uint8_t { kExpected, kThere, kAway };
  struct Worker {
    Presence presence = Presence::kExpected;
    bool has_turn = false;
    bool late = false;
    Unit unit = -1;
    Version read = 0;
    Unit kept = -1;
  };
  Worker& at(int worker);
  const Worker& at(int worker) const;
  Unit take_for(int worker, Unit below);
  Unit take_kept_of_others(Unit below);
  void keep_next(Worker& worker, bool first);
  void end_turn(Worker& worker);

  std::int64_t units_per_step_;
  UnitPool pool_;
  std::vector<Worker> workers_;
  int expected_;
  int running_ = 0;
};

// Orders as invariant 2 demands, and applies the units.
Update make_update(Version version, std::vector<Gradient> gradients, double scale, UnitPool& pool);

}  // namespace paceline::pserver
