#include "runtime/simulation/virtual_cluster.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace paceline::simulation {
namespace {

struct Event {
  double ms = 0;
  std::int64_t turn = 0;  // the number of the turn that is done
  int worker = 0;
  bool operator>(const Event& other) const { return std::tie(ms, turn) > std::tie(other.ms, other.turn); }
};

class Cluster {
 public:
  Cluster(pserver::Policy& policy, const ClusterOptions& options, Observer* observer)
      : policy_(policy),
        options_(options),
        observer_(observer == nullptr ? &nobody_ : observer),
        delays_(options.delays, options.workers, options.seed),
        computing_(static_cast<std::size_t>(options.workers)),
        first_step_(policy.step()) {}

  ClusterReport run() {
    for (int worker = 0; worker < options_.workers; ++worker) happen(policy_.joined(worker));
    while (!ended_ && !events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      Computing& computing = computing_[static_cast<std::size_t>(event.worker)];
      if (computing.turn != event.turn) continue;  // it gave this one up
      now_ms_ = event.ms;
      stop_computing(computing);
      happen(policy_.committed(event.worker, computing.unit));
    }
    report_.ms = now_ms_;
    report_.steps = policy_.step() - first_step_;
    for (Computing& computing : computing_) {
      if (computing.turn != 0) stop_computing(computing);
    }
    const double all = report_.ms * options_.workers;
    report_.waiting = all > 0 ? std::max(0.0, 1 - busy_ms_ / all) : 0;  // rounding must not go below 0
    return report_;
  }

 private:
  struct Computing {
    std::int64_t turn = 0;  // 0: none
    pserver::Unit unit = 0;
    pserver::Version read = 0;
    double since_ms = 0;
  };

  void stop_computing(Computing& computing) {
    busy_ms_ += now_ms_ - computing.since_ms;
    computing.turn = 0;
  }

  void happen(const pserver::Effects& effects) {
    for (const pserver::Update& update : effects.updates) {
      ++report_.updates;
      report_.applied += static_cast<std::int64_t>(update.gradients.size());
      for (const pserver::Gradient& gradient : update.gradients) {
        report_.staleness.applied(pserver::staleness_of(update, gradient));
      }
      observer_->updated(update, now_ms_);
    }
    for (const pserver::Gradient& gradient : effects.drops) drop(gradient);
    for (const pserver::Turn& turn : effects.turns) begin(turn);
    if (effects.finished || observer_->enough()) {
      ended_ = true;
    } else if (options_.late_workers_stop && !effects.updates.empty()) {
      give_up_late(effects.updates.back().version);
    }
  }

  void begin(const pserver::Turn& turn) {
    observer_->turn(turn);
    const double done = now_ms_ + options_.work * delays_.next_ms(turn.worker);
    computing_[static_cast<std::size_t>(turn.worker)] = {++turns_, turn.unit, turn.read, now_ms_};
    events_.push({done, turns_, turn.worker});
  }

  void drop(const pserver::Gradient& gradient) {
    ++report_.dropped;
    report_.staleness.dropped();
    observer_->dropped(gradient);
  }

  // For a policy, a worker that gives up its turn is one that goes and comes.
  void give_up_late(pserver::Version present) {
    for (int worker = 0; worker < options_.workers; ++worker) {
      Computing& computing = computing_[static_cast<std::size_t>(worker)];
      if (computing.turn == 0 || computing.read >= present) continue;
      stop_computing(computing);
      drop({worker, computing.unit, computing.read});
      happen(policy_.left(worker));
      happen(policy_.joined(worker));
    }
  }

  pserver::Policy& policy_;
  const ClusterOptions& options_;
  Observer nobody_;
  Observer* observer_;
  Delays delays_;
  std::vector<Computing> computing_;
  Step first_step_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t turns_ = 0;
  double now_ms_ = 0, busy_ms_ = 0;
  bool ended_ = false;
  ClusterReport report_;
};

}  // namespace

ClusterReport simulate(pserver::Policy& policy, const ClusterOptions& options, Observer* observer) {
  return Cluster(policy, options, observer).run();
}

}  // namespace paceline::simulation
