#include "runtime/simulation/virtual_cluster.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/simulation/modes.h"

namespace paceline::simulation {
namespace {

constexpr DelayModel kClusterDelays{.log_mean = 3, .log_deviation = 0.3};

ClusterReport run(const Mode& mode, Step steps, ClusterOptions options, Observer* observer = nullptr) {
  options.workers = static_cast<int>(mode.spec.workers());
  const auto policy = *pserver::make_policy(mode.spec, {.total_steps = steps});
  return simulate(*policy, options, observer);
}

// Synchronous workers wait for the slowest: a step takes as long as the slowest of N draws.
TEST(VirtualClusterTest, ASynchronousStepTakesAsLongAsTheSlowest) {
  const double slowest = order_statistics(kClusterDelays, 20, 20000, 1).back();
  const ClusterReport report = run(synchronous(20), 3000, {.delays = kClusterDelays, .seed = 5});
  EXPECT_EQ(report.steps, 3000);
  EXPECT_EQ(report.updates, 3000);
  EXPECT_EQ(report.applied, 60000);
  EXPECT_EQ(report.dropped, 0);
  EXPECT_EQ(report.staleness.max(), 0);
  EXPECT_NEAR(report.step_ms(), slowest, 0.01 * slowest);
  const double mean = std::exp(3 + 0.3 * 0.3 / 2);
  EXPECT_NEAR(report.waiting, 1 - mean / slowest, 0.01);
}

// Where late workers stop at once, all begin each step together, and a step takes the N-b fastest of N draws.
TEST(VirtualClusterTest, WithBackupsAStepTakesAsLongAsTheSlowestThatCounts) {
  const std::vector<double> order = order_statistics(kClusterDelays, 20, 20000, 1);
  const ClusterReport report =
      run(with_backups(20, 3), 3000, {.delays = kClusterDelays, .seed = 5, .late_workers_stop = true});
  EXPECT_NEAR(report.step_ms(), order[16], 0.01 * order[16]);
  EXPECT_EQ(report.applied, 17 * 3000);
  EXPECT_EQ(report.dropped, 3 * 2999) << "the last update ends it";
  const ClusterReport finishing = run(with_backups(20, 3), 3000, {.delays = kClusterDelays, .seed = 5});
  EXPECT_GT(finishing.step_ms(), report.step_ms())
      << "who finishes what is too late begins the next step late";
  EXPECT_LT(finishing.step_ms(), order[19]);
}

TEST(VirtualClusterTest, WaitingIsNeverNegative) {
  for (const int workers : {1, 2, 3, 7}) {
    const double waiting =
        run(synchronous(workers), 3, {.delays = {.log_mean = 3, .log_deviation = 0}, .seed = 1}).waiting;
    EXPECT_GE(waiting, 0);
    EXPECT_LT(waiting, 1e-9);
  }
}

TEST(VirtualClusterTest, AsynchronousWorkersNeverWait) {
  const ClusterReport report = run(asynchronous(16), 500, {.delays = kClusterDelays, .seed = 5});
  EXPECT_EQ(report.updates, 16 * 500);
  EXPECT_LT(report.waiting, 0.01) << "but for the last units";
  const double mean = std::exp(3 + 0.3 * 0.3 / 2);
  EXPECT_NEAR(report.step_ms(), mean, 0.02 * mean) << "N gradients in the time of one";
  EXPECT_NEAR(report.staleness.mean(), 15, 0.2) << "the others' updates";
}

TEST(VirtualClusterTest, StalenessZeroIsSynchronousAndMoreOfItIsFaster) {
  const ClusterOptions options{.delays = kClusterDelays, .seed = 5};
  const ClusterReport zero = run(bounded(8, 0), 300, options),
                      synchronous_ = run(synchronous(8), 300, options);
  EXPECT_EQ(zero.ms, synchronous_.ms);
  EXPECT_EQ(zero.updates, synchronous_.updates);
  EXPECT_EQ(zero.waiting, synchronous_.waiting);
  double before = zero.ms;
  for (const int staleness : {1, 3, 10}) {
    const ClusterReport report = run(bounded(8, staleness), 300, options);
    EXPECT_LT(report.ms, before) << staleness;
    before = report.ms;
  }
}

// The reason for backup workers: one machine of ten is ten times slower.
TEST(VirtualClusterTest, OneSlowWorkerOfNPlusBackupsCostsNothing) {
  const DelayModel slow{.log_mean = 3, .log_deviation = 0.1, .slow_workers = 1, .slow_factor = 10};
  const DelayModel clean{.log_mean = 3, .log_deviation = 0.1};
  const double without = run(with_backups(10, 2), 1000, {.delays = clean, .seed = 3}).step_ms();
  EXPECT_NEAR(run(with_backups(10, 2), 1000, {.delays = slow, .seed = 3}).step_ms(), without, 0.05 * without);
  EXPECT_GT(run(synchronous(10), 1000, {.delays = slow, .seed = 3}).step_ms(), 8 * without);
}

TEST(VirtualClusterTest, ASeedRepeatsAndAnotherDoesNot) {
  const double ms = run(asynchronous(5), 50, {.delays = kClusterDelays, .seed = 1}).ms;
  EXPECT_EQ(run(asynchronous(5), 50, {.delays = kClusterDelays, .seed = 1}).ms, ms);
  EXPECT_NE(run(asynchronous(5), 50, {.delays = kClusterDelays, .seed = 2}).ms, ms);
  EXPECT_DOUBLE_EQ(run(asynchronous(5), 50, {.delays = kClusterDelays, .seed = 1, .work = 2}).ms, 2 * ms);
}

class Counting : public Observer {
 public:
  void turn(const pserver::Turn&) override { ++turns; }
  void dropped(const pserver::Gradient&) override { ++drops; }
  void updated(const pserver::Update& update, double) override {
    for (const pserver::Gradient& gradient : update.gradients)
      EXPECT_TRUE(units.insert(gradient.unit).second);
  }
  bool enough() override { return units.size() >= most; }
  std::size_t most = 1u << 30, turns = 0, drops = 0;
  std::set<pserver::Unit> units;
};

TEST(VirtualClusterTest, EveryGradientIsAppliedOrDroppedOrStillComputed) {
  for (const bool stop : {false, true}) {
    for (const Mode& mode :
         {synchronous(6), with_backups(6, 2), dropping(6, 2), bounded(6, 2), asynchronous(6)}) {
      if (stop && mode.spec.synchronization() != v1::ParameterServerSpec::SYNCHRONOUS) continue;
      Counting counting;
      const ClusterReport report =
          run(mode, 40, {.delays = kClusterDelays, .seed = 2, .late_workers_stop = stop}, &counting);
      EXPECT_EQ(report.steps, 40) << mode.name;
      EXPECT_EQ(static_cast<std::int64_t>(counting.units.size()), report.applied);
      EXPECT_EQ(static_cast<std::int64_t>(counting.drops), report.dropped);
      EXPECT_LE(counting.turns - counting.units.size() - counting.drops, 2u)
          << mode.name << ": those late at the end";
    }
  }
}

TEST(VirtualClusterTest, EndsWhenTheObserverHasEnough) {
  Counting counting;
  counting.most = 10;
  EXPECT_EQ(run(asynchronous(4), 1000, {.delays = kClusterDelays, .seed = 1}, &counting).applied, 10);
}

}  // namespace
}  // namespace paceline::simulation
