#pragma once

// Which units are free, given out, or applied: the bookkeeping by which every unit counts exactly once. Pure.
//
// A unit is free until it is taken; then it is out, until it is applied or given back. Memory is that of the
// units that were taken and are not applied: those below the lowest free unit that was never taken, but for
// what is kept here, are applied.

#include <set>

#include "runtime/pserver/policy/policy.h"

namespace paceline::pserver {

class UnitPool {
 public:
  // Units [0, limit), of which `applied` are.
  UnitPool(const UnitsApplied& applied, Unit limit);

  // The lowest free unit below `below`; -1: there is none. It is out from now on.
  Unit take(Unit below);
  // This one; false where it is not free.
  bool take_exactly(Unit unit);
  // REQUIRES: it is out.
  void give_back(Unit unit);
  void apply(Unit unit);

  // The lowest unit that is not applied; the limit where all are.
  Unit lowest() const;
  std::int64_t applied_count() const;
  Unit limit() const { return limit_; }
  UnitsApplied applied() const;

 private:
  std::int64_t units_per_step_;
  Unit limit_;
  Unit fresh_ = 0;       // no unit from here on was ever taken
  std::set<Unit> free_;  // below fresh_, and free
  std::set<Unit> out_;
};

}  // namespace paceline::pserver
