#include "benchmarks/stragglers_programs/worker_tally.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "runtime/simulation/modes.h"

namespace bench {
namespace {

using namespace paceline;
using pserver::TurnResult;

TimePoint at(double ms) {
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms)));
}

TurnResult turn(Step step, std::int64_t updates, std::int64_t gradients, std::int64_t staleness = -1) {
  return {.step = step, .updates = updates, .gradients = gradients, .staleness = staleness};
}

TurnResult end(TurnResult turn, bool dropped = false) {
  turn.finished = true;
  turn.dropped = dropped;
  return turn;
}

// Two workers, two steps that need one gradient each: worker 0 is the first both times. Worker 1's first one
// comes late, and its second one is still being computed when the training ends.
std::vector<WorkerRecord> one_of_two(bool last_in_time) {
  WorkerTally fast, slow;
  fast.turn(turn(0, 0, 0), at(100));
  slow.turn(turn(0, 0, 0), at(101));
  fast.computed(at(110));
  fast.turn(turn(1, 1, 1, 0), at(112));
  slow.computed(at(115));
  TurnResult late = turn(1, 1, 1);
  late.dropped = true;
  slow.turn(late, at(116));
  fast.computed(at(120));
  fast.turn(end(turn(2, 1, 1, 0)), at(122));
  slow.computed(at(last_in_time ? 121 : 130));
  slow.turn(end(turn(2, 1, 1), /*dropped=*/true), at(131));
  return {fast.record(), slow.record()};
}

TEST(WorkerTallyTest, FromTheFirstTurnUntilTheFirstHasHeardOfTheEnd) {
  const simulation::ClusterReport report = *together(one_of_two(false));
  EXPECT_DOUBLE_EQ(report.ms, 22);
  EXPECT_EQ(report.steps, 2);
  EXPECT_DOUBLE_EQ(report.step_ms(), 11);
  EXPECT_EQ(report.updates, 2);
  EXPECT_EQ(report.applied, 2);
  EXPECT_EQ(report.dropped, 1) << "what was still computed at the end is not dropped as late";
  EXPECT_DOUBLE_EQ(report.dropped_part(), 1.0 / 3);
  EXPECT_EQ(report.staleness.max(), 0);
  // Worker 0 computed from 100 to 110 and from 112 to 120, worker 1 from 101 to 115 and from 116 to the end.
  EXPECT_NEAR(report.waiting, 1 - (10 + 8 + 14 + 6) / 44.0, 1e-9);
}

TEST(WorkerTallyTest, AGradientThatWasLateBeforeTheEndIsDropped) {
  EXPECT_EQ(together(one_of_two(true))->dropped, 2);
}

TEST(WorkerTallyTest, ATurnThatComesAfterTheEndTakesNoTime) {
  WorkerTally first, other;
  first.turn(turn(0, 0, 0), at(0));
  other.turn(turn(0, 0, 0), at(0));
  first.computed(at(4));
  other.computed(at(4));
  other.turn(turn(1, 1, 2, 0), at(6));  // its message was slow
  first.turn(end(turn(1, 1, 2, 0)), at(5));
  other.computed(at(9));
  other.turn(end(turn(1, 0, 0), true), at(9));
  const simulation::ClusterReport report = *together(std::vector{first.record(), other.record()});
  EXPECT_NEAR(report.waiting, 1 - 8 / 10.0, 1e-9);
  EXPECT_EQ(report.dropped, 0);
}

TEST(WorkerTallyTest, WorkersThatDisagreeAreAnError) {
  std::vector<WorkerRecord> records = one_of_two(false);
  records[1].gradients = 3;
  EXPECT_EQ(std::string(together(records).status().message()),
            "worker 1 heard of 2 steps, 2 updates and 3 gradients, worker 0 of 2, 2 and 2");
  records = one_of_two(false);
  records[0].gradients = records[1].gradients = 3;
  EXPECT_EQ(
      std::string(together(records).status().message()),
      "workers were told of 2 of their gradients that these were applied, and of 3 that all together were");
}

// Tells tallies what a simulation does, as real servers would tell it.
class Teller final : public simulation::Observer {
 public:
  explicit Teller(const simulation::ClusterOptions& options)
      : work_(options.work),
        delays_(options.delays, options.workers, options.seed),
        workers_(static_cast<std::size_t>(options.workers)) {}

  // Given at the worker's own commit, or at an update that it waited for.
  void turn(const pserver::Turn& turn) override {
    Worker& worker = of(turn.worker);
    const double now = std::max(updated_ms_, worker.committed_ms);
    if (worker.committed_ms > 0) worker.tally.computed(at(worker.committed_ms));
    worker.tally.turn(std::exchange(worker.next, {}), at(now));
    worker.committed_ms = now + work_ * delays_.next_ms(turn.worker);
  }
  void dropped(const pserver::Gradient& gradient) override { of(gradient.worker).next.dropped = true; }
  void updated(const pserver::Update& update, double now_ms) override {
    updated_ms_ = now_ms;
    for (Worker& worker : workers_) {
      ++worker.next.updates;
      worker.next.gradients += static_cast<std::int64_t>(update.gradients.size());
    }
    for (const pserver::Gradient& gradient : update.gradients) {
      of(gradient.worker).next.staleness = pserver::staleness_of(update, gradient);
    }
  }

  std::vector<WorkerRecord> finish(Step steps) {
    std::vector<WorkerRecord> records;
    for (Worker& worker : workers_) {
      const bool late = worker.committed_ms > updated_ms_;
      worker.next.step = steps;
      worker.tally.computed(at(worker.committed_ms));
      worker.tally.turn(end(worker.next, late || worker.next.dropped),
                        at(std::max(updated_ms_, worker.committed_ms)));
      records.push_back(worker.tally.record());
    }
    return records;
  }

 private:
  struct Worker {
    WorkerTally tally;
    TurnResult next;
    double committed_ms = 0;  // its newest gradient
  };
  Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }

  double work_;
  simulation::Delays delays_;
  std::vector<Worker> workers_;
  double updated_ms_ = 0;
};

TEST(WorkerTallyTest, OfTheSimulationsEventsItMakesTheSimulationsReport) {
  constexpr int kWorkers = 8;
  constexpr Step kSteps = 40;
  for (const simulation::Mode& mode : simulation::modes_to_compare(kWorkers, 2, {0, 1, 4})) {
    const simulation::ClusterOptions options{.workers = kWorkers,
                                             .delays = {.log_mean = 3, .log_deviation = 0.6},
                                             .seed = 11,
                                             .work = mode.samples_per_gradient()};
    Teller teller(options);
    const auto policy = *pserver::make_policy(mode.spec, {.total_steps = kSteps});
    const simulation::ClusterReport simulated = simulation::simulate(*policy, options, &teller);
    const auto measured = together(teller.finish(kSteps));
    ASSERT_TRUE(measured.ok()) << mode.name << ": " << measured.status();
    EXPECT_NEAR(measured->ms, simulated.ms, 1e-3) << mode.name;
    EXPECT_EQ(measured->steps, simulated.steps) << mode.name;
    EXPECT_EQ(measured->updates, simulated.updates) << mode.name;
    EXPECT_EQ(measured->applied, simulated.applied) << mode.name;
    EXPECT_EQ(measured->dropped, simulated.dropped) << mode.name;
    EXPECT_NEAR(measured->waiting, simulated.waiting, 1e-6) << mode.name;
    EXPECT_EQ(measured->staleness.histogram(), simulated.staleness.histogram()) << mode.name;
    EXPECT_EQ(measured->staleness.max(), simulated.staleness.max()) << mode.name;
  }
}

}  // namespace
}  // namespace bench
