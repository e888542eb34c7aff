// Every mode with random numbers of workers, in every order of events that a seed gives: workers that are
// slow, go away, come back, never come; gradients that come late; checkpoints from which another training
// goes on. The invariants are checked after each event (watched_policy.h). What comes twice no policy sees:
// the sequencer refuses it (Sequencer.RepeatedReportCountsOnce).

#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/text.h"
#include "tests/unit/runtime/pserver/policy/watched_policy.h"

namespace paceline::pserver {
namespace {

v1::ParameterServerSpec random_spec(Rng& rng) {
  v1::ParameterServerSpec spec;
  const auto workers = static_cast<std::int64_t>(1 + rng.below(8));
  spec.set_workers(workers);
  spec.set_units_per_step(workers);
  spec.set_gradients_per_step(workers);
  switch (rng.below(5)) {
    case 0:
      break;
    case 1:  // backup workers
      spec.set_gradients_per_step(1 +
                                  static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(workers))));
      spec.set_units_per_step(spec.gradients_per_step());
      break;
    case 2:  // drop without backups
      spec.set_gradients_per_step(1 +
                                  static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(workers))));
      break;
    case 3:
      spec.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
      break;
    default:
      spec.set_synchronization(v1::ParameterServerSpec::BOUNDED_STALENESS);
      spec.set_staleness(static_cast<std::int64_t>(rng.below(5)));
  }
  return spec;
}

bool drops_samples(const v1::ParameterServerSpec& spec) {
  return spec.synchronization() == v1::ParameterServerSpec::SYNCHRONOUS &&
         spec.gradients_per_step() < spec.units_per_step();
}

class World {
 public:
  World(std::uint64_t seed, bool with_losses)
      : rng_(seed, 1),
        with_losses_(with_losses),
        spec_(random_spec(rng_)),
        slow_(static_cast<int>(rng_.below(9))) {
    start_.total_steps = 1 + static_cast<Step>(rng_.below(12));
    policy_ = std::make_unique<WatchedPolicy>(spec_, start_);
  }

  void run() {
    constexpr int kMaxEvents = 3000;
    int events = 0;
    for (; events < kMaxEvents && !policy_->finished() && !::testing::Test::HasFailure(); ++events) event();
    if (!with_losses_) {
      EXPECT_LT(events, kMaxEvents);
    }
    // Whatever happened: who is there now brings it to its end; where all are needed, they come back.
    for (int worker = 0; worker < (policy_->needs_all() ? spec_.workers() : 1); ++worker) {
      if (!policy_->is_there(worker)) policy_->join(worker);
    }
    policy_->nobody_else_comes();
    while (!policy_->finished() && !::testing::Test::HasFailure())
      policy_->commit(choose(policy_->computing()));
    check_end();
  }

  WatchedPolicy& policy() { return *policy_; }

 private:
  int choose(const std::vector<int>& workers) { return workers[rng_.below(workers.size())]; }

  void event() {
    const int worker = static_cast<int>(rng_.below(static_cast<std::uint64_t>(spec_.workers())));
    const std::uint64_t what = rng_.below(with_losses_ ? 40 : 20);
    if (what == 39 && policy_->is_there(worker)) return policy_->leave(worker);
    if (what == 38) return resume();
    if (!policy_->is_there(worker)) return policy_->join(worker);
    if (worker == slow_ && rng_.below(10) != 0) return;
    if (policy_->has_turn(worker)) policy_->commit(worker);
  }

  // The servers' state is saved; another job goes on from it, with everybody new.
  void resume() {
    if (rng_.below(4) != 0) return;
    start_.units = policy_->policy().units();
    start_.step = policy_->policy().step();
    policy_ = std::make_unique<WatchedPolicy>(spec_, start_);
  }

  void check_end() {
    const auto applied = static_cast<std::int64_t>(policy_->applied().size());
    EXPECT_EQ(policy_->policy().step(), start_.total_steps);
    const std::int64_t per_step = drops_samples(spec_) ? spec_.gradients_per_step() : spec_.units_per_step();
    EXPECT_EQ(applied, start_.total_steps * per_step) << "units of all steps are applied";
  }

  Rng rng_;
  bool with_losses_;
  v1::ParameterServerSpec spec_;
  int slow_;
  PolicyStart start_;
  std::unique_ptr<WatchedPolicy> policy_;
};

void run_worlds(bool with_losses) {
  std::int64_t drops = 0, several = 0, lead = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE(str_cat("seed ", seed));
    World world(seed, with_losses);
    world.run();
    drops += world.policy().drops();
    several += world.policy().several_of_one();
    lead = std::max(lead, world.policy().greatest_lead());
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(drops, 1000);
  EXPECT_EQ(lead, 4) << "the bound is reached";
  if (with_losses) {
    EXPECT_GT(several, 100) << "some compute several units of a step";
  }
}

TEST(PolicyRandomTest, SlowWorkers) {
  run_worlds(false);
}
TEST(PolicyRandomTest, WorkersThatGoAndComeAndTrainingsThatAreResumed) {
  run_worlds(true);
}

// A worker that keeps pace always computes the same part, and knows ahead what comes next.
TEST(PolicyTest, WorkersThatKeepPaceKeepTheirPart) {
  for (const auto mode : {v1::ParameterServerSpec::SYNCHRONOUS, v1::ParameterServerSpec::ASYNCHRONOUS,
                          v1::ParameterServerSpec::BOUNDED_STALENESS}) {
    v1::ParameterServerSpec spec;
    spec.set_synchronization(mode);
    spec.set_workers(4);
    spec.set_units_per_step(4);
    spec.set_gradients_per_step(4);
    spec.set_staleness(2);
    const auto policy = *make_policy(spec, {.total_steps = 50});
    std::map<int, Turn> turns;
    const auto take = [&](const Effects& effects) {
      for (const Turn& turn : effects.turns) {
        EXPECT_EQ(turn.unit % 4, turn.worker);
        if (turns.contains(turn.worker)) {
          EXPECT_EQ(turn.unit, turns[turn.worker].next);
        }
        turns[turn.worker] = turn;
      }
    };
    for (const int worker : {3, 1, 0, 2}) take(policy->joined(worker));
    for (int step = 0; step < 50; ++step) {
      for (const int worker : {2, 0, 3, 1}) take(policy->committed(worker, turns[worker].unit));
    }
    EXPECT_EQ(policy->step(), 50);
  }
}

// However slow one worker is, what is remembered stays small.
TEST(PolicyTest, OneWorkerThatNeverCommitsCostsNoMemory) {
  v1::ParameterServerSpec spec;
  spec.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
  spec.set_workers(4);
  spec.set_units_per_step(4);
  const auto policy = *make_policy(spec, {.total_steps = 10000});
  std::map<int, Unit> turns;
  const auto take = [&](const Effects& effects) {
    for (const Turn& turn : effects.turns) turns[turn.worker] = turn.unit;
  };
  for (int worker = 0; worker < 4; ++worker) take(policy->joined(worker));
  for (int i = 0; i < 30000; ++i) {
    const int worker = 1 + i % 3;
    take(policy->committed(worker, turns[worker]));
  }
  EXPECT_EQ(policy->units().count(), 30000);
  EXPECT_LE(policy->units().missing.size(), 12u);
}

}  // namespace
}  // namespace paceline::pserver
