// Bounded staleness: stale synchronous parallel (Ho et al. 2013).
//
// A worker's clock counts the units that it has committed. It may begin clock c when c is at most `staleness`
// above the slowest clock. Whoever begins reads everything that was committed so far, so all updates of
// clocks up to c - staleness - 1 are in it, and the worker's own. What was committed since the last read
// becomes one update at the next: with staleness 0 everybody begins together, and that is the synchronous
// update.
//
// Those who left do not count; those that are expected stand at their first clock. Who comes (again) begins
// at the slowest clock.

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/pserver/policy/modes.h"
#include "runtime/pserver/policy/turns.h"

namespace paceline::pserver {
namespace {

class BoundedStaleness final : public Policy {
 public:
  BoundedStaleness(const Setup& setup, std::int64_t staleness)
      : units_per_step_(setup.units_per_step),
        staleness_(staleness),
        turns_(setup.workers, setup.units_per_step, setup.start),
        clocks_(static_cast<std::size_t>(setup.workers), 0),
        at_clock_{{0, setup.workers}} {}

  Effects joined(int worker) override {
    if (!counts_in(worker)) count(worker, slowest_);
    turns_.join(worker);
    idle_[clock_of(worker)].insert(worker);
    return hand_out();
  }

  Effects committed(int worker, Unit unit) override {
    in_.push_back(turns_.commit(worker, unit).gradient);
    const std::int64_t clock = clock_of(worker);
    forget(worker);
    count(worker, clock + 1);
    idle_[clock + 1].insert(worker);
    return hand_out();
  }

  Effects left(int worker) override {
    turns_.leave(worker);
    const auto same_clock = idle_.find(clock_of(worker));
    if (same_clock != idle_.end()) same_clock->second.erase(worker);
    forget(worker);
    return hand_out();
  }

  Step step() const override { return turns_.pool().applied_count() / units_per_step_; }
  UnitsApplied units() const override { return turns_.pool().applied(); }

 private:
  static constexpr std::int64_t kAway = -1;

  std::int64_t& clock_of(int worker) { return clocks_[static_cast<std::size_t>(worker)]; }
  bool counts_in(int worker) { return clock_of(worker) != kAway; }

  void count(int worker, std::int64_t clock) {
    clock_of(worker) = clock;
    ++at_clock_[clock];
  }

  void forget(int worker) {
    const auto at = at_clock_.find(clock_of(worker));
    if (--at->second == 0) at_clock_.erase(at);
    clock_of(worker) = kAway;
  }

  Effects hand_out() {
    Effects effects;
    if (!at_clock_.empty()) slowest_ = at_clock_.begin()->first;
    const Version read = version_ + (in_.empty() ? 0 : 1);
    for (const int worker : may_begin()) {
      const auto turn = turns_.give(worker, read, turns_.pool().limit());
      if (!turn) break;
      effects.turns.push_back(*turn);
      idle_[clock_of(worker)].erase(worker);
    }
    const auto committed = static_cast<std::int64_t>(in_.size());
    const bool all_committed = turns_.pool().applied_count() + committed == turns_.pool().limit();
    if (committed > 0 && (all_committed || !effects.turns.empty())) {
      effects.updates.push_back(make_update(++version_, std::exchange(in_, {}), 1, turns_.pool()));
    }
    effects.finished = turns_.all_applied();
    return effects;
  }

  // Those without a turn whose clock is not too far ahead, in their order.
  std::set<int> may_begin() {
    std::set<int> workers;
    while (!idle_.empty() && idle_.begin()->second.empty()) idle_.erase(idle_.begin());
    for (const auto& [clock, idle] : idle_) {
      if (clock > slowest_ + staleness_) break;
      workers.insert(idle.begin(), idle.end());
    }
    return workers;
  }

  std::int64_t units_per_step_;
  std::int64_t staleness_;
  Turns turns_;
  Version version_ = 0;
  std::vector<Gradient> in_;                    // committed, and not in the weights
  std::vector<std::int64_t> clocks_;            // of each worker that is there or expected; else kAway
  std::map<std::int64_t, int> at_clock_;        // how many of them stand at each clock
  std::map<std::int64_t, std::set<int>> idle_;  // there, without a turn, by clock
  std::int64_t slowest_ = 0;                    // the last that there was
};

}  // namespace

std::unique_ptr<Policy> make_bounded_staleness(const Setup& setup, std::int64_t staleness) {
  return std::make_unique<BoundedStaleness>(setup, staleness);
}

}  // namespace paceline::pserver
