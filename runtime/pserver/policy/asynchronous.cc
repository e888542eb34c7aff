// Asynchronous (Downpour, Dean et al. 2012): a gradient is an update of its own as soon as it is there, and
// its worker goes on at once with what the weights are then. Nobody waits, but for units when all are given
// out.

#include <set>
#include <utility>

#include "runtime/pserver/policy/modes.h"
#include "runtime/pserver/policy/turns.h"

namespace paceline::pserver {
namespace {

class Asynchronous final : public Policy {
 public:
  explicit Asynchronous(const Setup& setup)
      : units_per_step_(setup.units_per_step), turns_(setup.workers, setup.units_per_step, setup.start) {}

  Effects joined(int worker) override {
    turns_.join(worker);
    idle_.insert(worker);
    return hand_out({});
  }

  Effects committed(int worker, Unit unit) override {
    const Gradient gradient = turns_.commit(worker, unit).gradient;
    idle_.insert(worker);
    Effects effects;
    effects.updates.push_back(make_update(++version_, {gradient}, 1, turns_.pool()));
    return hand_out(std::move(effects));
  }

  Effects left(int worker) override {
    turns_.leave(worker);
    idle_.erase(worker);
    return hand_out({});
  }

  Step step() const override { return turns_.pool().applied_count() / units_per_step_; }
  UnitsApplied units() const override { return turns_.pool().applied(); }

 private:
  Effects hand_out(Effects effects) {
    effects.finished = turns_.all_applied();
    for (auto worker = idle_.begin(); worker != idle_.end();) {
      const auto turn = turns_.give(*worker, version_, turns_.pool().limit());
      if (!turn) break;
      effects.turns.push_back(*turn);
      worker = idle_.erase(worker);
    }
    return effects;
  }

  std::int64_t units_per_step_;
  Turns turns_;
  std::set<int> idle_;  // there, without a turn
  Version version_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_asynchronous(const Setup& setup) {
  return std::make_unique<Asynchronous>(setup);
}

}  // namespace paceline::pserver
