#include "runtime/pserver/policy/unit_pool.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace paceline::pserver {

UnitPool::UnitPool(const UnitsApplied& applied, Unit limit)
    : units_per_step_(applied.units_per_step),
      limit_(limit),
      fresh_(applied.below),
      free_(applied.missing.begin(), applied.missing.end()) {}

Unit UnitPool::take(Unit below) {
  below = std::min(below, limit_);
  const Unit lowest = free_.empty() ? fresh_ : *free_.begin();
  if (lowest >= below) return -1;
  if (free_.empty()) {
    ++fresh_;
  } else {
    free_.erase(free_.begin());
  }
  out_.insert(lowest);
  return lowest;
}

bool UnitPool::take_exactly(Unit unit) {
  if (unit < 0 || unit >= limit_) return false;
  if (unit < fresh_) {
    if (free_.erase(unit) == 0) return false;
  } else {
    for (; fresh_ < unit; ++fresh_) free_.insert(free_.end(), fresh_);
    ++fresh_;
  }
  out_.insert(unit);
  return true;
}

void UnitPool::give_back(Unit unit) {
  PL_CHECK(out_.erase(unit) == 1, "only a unit that is out is given back");
  free_.insert(unit);
}

void UnitPool::apply(Unit unit) {
  PL_CHECK(out_.erase(unit) == 1, "a unit is applied once, while it is out");
}

Unit UnitPool::lowest() const {
  Unit lowest = fresh_;
  if (!free_.empty()) lowest = std::min(lowest, *free_.begin());
  if (!out_.empty()) lowest = std::min(lowest, *out_.begin());
  return lowest;
}

std::int64_t UnitPool::applied_count() const {
  return fresh_ - static_cast<std::int64_t>(free_.size() + out_.size());
}

UnitsApplied UnitPool::applied() const {
  UnitsApplied applied{.units_per_step = units_per_step_, .below = fresh_};
  std::merge(free_.begin(), free_.end(), out_.begin(), out_.end(), std::back_inserter(applied.missing));
  while (!applied.missing.empty() && applied.missing.back() == applied.below - 1) {
    applied.missing.pop_back();
    --applied.below;
  }
  return applied;
}

}  // namespace paceline::pserver
