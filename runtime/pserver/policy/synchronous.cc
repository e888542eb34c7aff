// Synchronous: all gradients of an update are computed with the same version.
//
// An update is the first `needed` gradients that were read at the present version. With as many workers, that
// is everybody's, and a step is made of that step's own units: worker r computes part r. With more workers
// than gradients needed (backup workers: Chen, Pan et al. 2016; or drop without backups, where a step has
// more units than gradients), those that come later are dropped, their units being free again from the moment
// of the update on, and their workers go on at the new version. Dropping is decided here once for a whole
// gradient, so it is the same for all tensors and on all servers.
//
// A worker whose gradient is in waits for the update. Where workers could be spared, and fewer are left than
// an update needs gradients, it computes another unit of the same version meanwhile, as SyncReplicas does.
// Where all are needed nobody takes a part over: whoever goes away is missed until it comes back or the view
// ends, so that every update is the same sum, to the bit, whenever the members of a stopped job leave.

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/pserver/policy/modes.h"
#include "runtime/pserver/policy/turns.h"

namespace paceline::pserver {
namespace {

class Synchronous final : public Policy {
 public:
  Synchronous(const Setup& setup, std::int64_t needed)
      : units_per_step_(setup.units_per_step),
        needed_(needed),
        spare_workers_(setup.workers > needed),
        total_steps_(setup.start.total_steps),
        step_(setup.start.step),
        turns_(setup.workers, setup.units_per_step, setup.start) {}

  Effects joined(int worker) override {
    turns_.join(worker);
    const bool is_in =
        std::ranges::any_of(in_, [worker](const Gradient& gradient) { return gradient.worker == worker; });
    (is_in && !spare_workers_ ? waiting_ : ready_).insert(worker);
    return hand_out({});
  }

  Effects committed(int worker, Unit unit) override {
    const Turns::Committed committed = turns_.commit(worker, unit);
    Effects effects;
    if (committed.late) {
      effects.drops.push_back(committed.gradient);
      ready_.insert(worker);
      return hand_out(std::move(effects));
    }
    in_.push_back(committed.gradient);
    waiting_.insert(worker);
    if (missing() == 0) update(effects);
    return hand_out(std::move(effects));
  }

  Effects left(int worker) override {
    turns_.leave(worker);
    ready_.erase(worker);
    waiting_.erase(worker);
    return hand_out({});
  }

  Step step() const override { return step_; }
  UnitsApplied units() const override { return turns_.pool().applied(); }

 private:
  std::int64_t missing() const { return needed_ - static_cast<std::int64_t>(in_.size()); }

  void update(Effects& effects) {
    const double scale = static_cast<double>(units_per_step_) / static_cast<double>(in_.size());
    effects.updates.push_back(make_update(++version_, std::exchange(in_, {}), scale, turns_.pool()));
    ++step_;
    turns_.all_are_late();
    ready_.merge(waiting_);
  }

  Effects hand_out(Effects effects) {
    effects.finished = step_ >= total_steps_;
    if (effects.finished) return effects;
    while (!ready_.empty() && (spare_workers_ || turns_.running() < missing())) {
      if (!give(ready_, effects)) break;
    }
    while (spare_workers_ && turns_.running() + turns_.expected() < missing()) {
      if (!give(ready_.empty() ? waiting_ : ready_, effects)) break;
    }
    return effects;
  }

  // A turn for the first of these workers. False: there is none, or no unit.
  bool give(std::set<int>& workers, Effects& effects) {
    if (workers.empty()) return false;
    // Without spare workers a step is its own units, so that what was dropped never changes who computes
    // what.
    const Unit below = spare_workers_ ? turns_.pool().limit() : (step_ + 1) * units_per_step_;
    const auto turn = turns_.give(*workers.begin(), version_, below);
    if (!turn) return false;
    effects.turns.push_back(*turn);
    workers.erase(workers.begin());
    return true;
  }

  std::int64_t units_per_step_;
  std::int64_t needed_;
  bool spare_workers_;
  Step total_steps_;
  Step step_;
  Turns turns_;
  Version version_ = 0;
  std::vector<Gradient> in_;  // of the next update
  std::set<int> ready_;       // there, without a turn, not in the next update
  std::set<int> waiting_;     // there, without a turn, in the next update
};

}  // namespace

std::unique_ptr<Policy> make_synchronous(const Setup& setup, std::int64_t gradients_per_step) {
  return std::make_unique<Synchronous>(setup, gradients_per_step);
}

}  // namespace paceline::pserver
