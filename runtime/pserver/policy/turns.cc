#include "runtime/pserver/policy/turns.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace paceline::pserver {

namespace {
// A unit is kept for the worker that computed the same part of the step before, if it is less than so many
// steps beyond the lowest that is not applied: so a fast worker takes over what slow ones leave.
constexpr Unit kNearSteps = 3;
}  // namespace

Turns::Turns(int workers, std::int64_t units_per_step, const PolicyStart& start)
    : units_per_step_(units_per_step),
      pool_(start.units, start.total_steps * units_per_step),
      workers_(static_cast<std::size_t>(workers)),
      expected_(workers) {}

Turns::Worker& Turns::at(int worker) {
  PL_CHECK(worker >= 0 && static_cast<std::size_t>(worker) < workers_.size(), "workers are 0 to N-1");
  return workers_[static_cast<std::size_t>(worker)];
}

const Turns::Worker& Turns::at(int worker) const {
  return const_cast<Turns*>(this)->at(worker);
}

void Turns::join(int worker) {
  Worker& w = at(worker);
  PL_CHECK(w.presence != Presence::kThere, "a worker joins once, unless it left");
  if (w.presence == Presence::kExpected) --expected_;
  w = Worker{.presence = Presence::kThere};
}

bool Turns::leave(int worker) {
  Worker& w = at(worker);
  PL_CHECK(w.presence != Presence::kAway, "a worker leaves once");
  const bool was_there = w.presence == Presence::kThere;
  if (!was_there) --expected_;
  if (w.has_turn && !w.late) pool_.give_back(w.unit);
  if (w.has_turn) end_turn(w);
  if (w.kept >= 0) pool_.give_back(w.kept);
  w = Worker{.presence = Presence::kAway};
  return was_there;
}

void Turns::end_turn(Worker& w) {
  w.has_turn = false;
  if (!w.late) --running_;
}

std::optional<Turn> Turns::give(int worker, Version read, Unit below) {
  Worker& w = at(worker);
  PL_CHECK(w.presence == Presence::kThere && !w.has_turn,
           "a turn is for a worker that is there and has none");
  const Unit unit = take_for(worker, below);
  if (unit < 0) return std::nullopt;
  const bool first = w.unit < 0;
  w.has_turn = true;
  w.late = false;
  w.unit = unit;
  w.read = read;
  ++running_;
  keep_next(w, first);
  return Turn{worker, unit, read, w.kept};
}

Unit Turns::take_for(int worker, Unit below) {
  Worker& w = at(worker);
  if (w.kept >= 0 && w.kept < below) return std::exchange(w.kept, -1);
  const Unit own_part = pool_.lowest() / units_per_step_ * units_per_step_ + worker;
  if (w.unit < 0 && own_part < below && pool_.take_exactly(own_part)) return own_part;
  const Unit unit = pool_.take(below);
  return unit >= 0 ? unit : take_kept_of_others(below);
}

Unit Turns::take_kept_of_others(Unit below) {
  const auto lowest = [&](const Worker& a, const Worker& b) {
    const auto rank = [&](const Worker& w) { return std::tuple(w.kept < 0 || w.kept >= below, w.kept); };
    return rank(a) < rank(b);
  };
  Worker& from = *std::min_element(workers_.begin(), workers_.end(), lowest);
  return from.kept >= 0 && from.kept < below ? std::exchange(from.kept, -1) : -1;
}

// With its first turn a worker keeps nothing but its own part: others' parts are for them, who may begin
// later.
void Turns::keep_next(Worker& w, bool first) {
  if (w.kept >= 0) return;
  const Unit same_part = w.unit + units_per_step_;
  const bool near = same_part < pool_.lowest() + kNearSteps * units_per_step_;
  if (near && pool_.take_exactly(same_part)) {
    w.kept = same_part;
  } else if (!first) {
    w.kept = pool_.take(pool_.limit());
  }
}

Turns::Committed Turns::commit(int worker, Unit unit) {
  Worker& w = at(worker);
  PL_CHECK(w.has_turn && w.unit == unit, "a worker commits the unit of its turn");
  end_turn(w);
  return {{worker, unit, w.read}, w.late};
}

void Turns::all_are_late() {
  for (Worker& w : workers_) {
    if (!w.has_turn || w.late) continue;
    w.late = true;
    --running_;
    pool_.give_back(w.unit);
  }
}

Update make_update(Version version, std::vector<Gradient> gradients, double scale, UnitPool& pool) {
  std::sort(gradients.begin(), gradients.end(), [](const Gradient& a, const Gradient& b) {
    return std::tuple(a.worker, a.unit) < std::tuple(b.worker, b.unit);
  });
  for (const Gradient& gradient : gradients) pool.apply(gradient.unit);
  return {version, std::move(gradients), scale};
}

}  // namespace paceline::pserver
