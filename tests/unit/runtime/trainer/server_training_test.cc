// A trainer's workers with parameter servers that are the test's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <set>

#include "runtime/collective/fault.h"
#include "runtime/trainer/trainer.h"
#include "tests/support/server_job.h"

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::multiset<pserver::Unit> applied_units(ServerJob& server_job) {
  std::multiset<pserver::Unit> units;
  for (const pserver::Update& update : server_job.servers.updates()) {
    for (const pserver::Gradient& gradient : update.gradients) units.insert(gradient.unit);
  }
  return units;
}
// Each of the first so many, once.
std::multiset<pserver::Unit> units_below(pserver::Unit end) {
  std::multiset<pserver::Unit> units;
  for (pserver::Unit unit = 0; unit < end; ++unit) units.insert(unit);
  return units;
}

v1::Heartbeat beat_of(ServerJob& server_job, int rank) {
  v1::Heartbeat beat;
  server_job.job.member(rank).membership->progress().collect(&beat);
  return beat;
}

TEST(ServerTraining, SynchronousHasAllReducesWeightsAtEveryStepOnAllWorkers) {
  for (const int workers : {1, 2, 3}) {
    const v1::TrainingSpec spec = server_spec(30, workers);
    ServerJob server_job(spec);
    server_job.run_to_the_end();
    const Hashes expected = hashes_by_all_reduce(workers, spec);
    ASSERT_EQ(expected.size(), 31u);
    for (int rank = 0; rank < workers; ++rank) {
      EXPECT_EQ(server_job.job.member(rank).hashes, expected) << "rank " << rank << " of " << workers;
      EXPECT_EQ(server_job.job.member(rank).outcome.step, 30);
    }
  }
}

TEST(ServerTraining, WithoutOverlapAndInMicroBatchesTheWeightsAreTheSame) {
  v1::TrainingSpec spec = server_spec(12, 2);
  const Hashes expected = hashes_by_all_reduce(2, spec);
  spec.mutable_parameter_server()->set_overlap(false);
  spec.set_micro_batch_size(5);
  ServerJob server_job(spec);
  server_job.run_to_the_end();
  EXPECT_EQ(server_job.job.member(1).hashes, expected);
}

TEST(ServerTraining, EveryUnitIsAppliedOnceInEveryMode) {
  for (const auto mode : {v1::ParameterServerSpec::SYNCHRONOUS, v1::ParameterServerSpec::ASYNCHRONOUS,
                          v1::ParameterServerSpec::BOUNDED_STALENESS}) {
    v1::TrainingSpec spec = server_spec(20, 3, mode);
    if (mode == v1::ParameterServerSpec::BOUNDED_STALENESS) spec.mutable_parameter_server()->set_staleness(2);
    ServerJob server_job(spec);
    server_job.run_to_the_end();
    EXPECT_EQ(applied_units(server_job), units_below(60)) << "mode " << mode;
    EXPECT_THAT(server_job.servers.left(), UnorderedElementsAre(0, 1, 2));
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(server_job.job.member(rank).outcome.step, 20);
  }
}

// Every step takes two gradients of three workers; what comes third is dropped, its unit is given out again,
// and its worker trains on to the end.
TEST(ServerTraining, ADroppedGradientsUnitIsDoneAgainAndItsWorkerGoesOn) {
  v1::TrainingSpec spec = server_spec(15, 3);
  spec.mutable_parameter_server()->set_gradients_per_step(2);
  spec.mutable_parameter_server()->set_units_per_step(2);
  ServerJob server_job(spec);
  server_job.run_to_the_end();
  ASSERT_EQ(server_job.servers.updates().size(), 15u);
  std::set<pserver::Unit> applied;
  for (const pserver::Update& update : server_job.servers.updates()) {
    EXPECT_EQ(update.gradients.size(), 2u);
    for (const pserver::Gradient& gradient : update.gradients) {
      EXPECT_TRUE(applied.insert(gradient.unit).second) << "unit " << gradient.unit << " twice";
    }
  }
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(beat_of(server_job, rank).step(), 15) << "rank " << rank;
}

// Drop without backups: a step is two of three parts, and so much is what members say has been trained.
TEST(ServerTraining, SamplesThatWereLeftOutAreNotCounted) {
  v1::TrainingSpec spec = server_spec(15, 3);
  spec.mutable_parameter_server()->set_gradients_per_step(2);
  ServerJob server_job(spec);
  server_job.run_to_the_end();
  for (int rank = 0; rank < 3; ++rank) {
    const v1::Heartbeat beat = beat_of(server_job, rank);
    EXPECT_EQ(beat.step(), 15) << "rank " << rank;
    EXPECT_EQ(beat.samples(), 15 * 32 * 2 / 3) << "rank " << rank;
  }
}

TEST(ServerTraining, HashesAreNotComparedWhereWorkersReadDifferentVersions) {
  ServerJob server_job(server_spec(10, 2, v1::ParameterServerSpec::ASYNCHRONOUS));
  server_job.run_to_the_end();
  EXPECT_TRUE(server_job.job.member(0).hashes.empty());
  EXPECT_EQ(beat_of(server_job, 0).weights_hash_step(), 0);
}

TEST(ServerTraining, Rank0AloneTellsLossesAndEvaluations) {
  v1::TrainingSpec spec = server_spec(8, 2);
  spec.mutable_evaluation()->set_every_steps(4);
  ServerJob server_job(spec);
  server_job.run_to_the_end();
  const v1::Heartbeat beat = beat_of(server_job, 0), other = beat_of(server_job, 1);
  EXPECT_EQ(beat.records_size(), 8);
  ASSERT_EQ(beat.evaluations_size(), 2);
  EXPECT_EQ(beat.evaluations(0).step(), 4);
  EXPECT_EQ(beat.evaluations(1).step(), 8);
  EXPECT_EQ(other.records_size(), 0);
  EXPECT_EQ(other.evaluations_size(), 0);
  EXPECT_EQ(other.step(), 8);
}

TEST(ServerTraining, ReachingTheTargetEndsAllWorkers) {
  v1::TrainingSpec spec = server_spec(1'000'000, 3, v1::ParameterServerSpec::ASYNCHRONOUS);
  spec.mutable_evaluation()->set_every_steps(3);
  spec.mutable_target()->set_metric("loss");
  spec.mutable_target()->set_value(1e9);
  ServerJob server_job(spec);
  server_job.run_to_the_end();
  EXPECT_TRUE(server_job.job.member(0).outcome.error.ok());
  EXPECT_LT(server_job.job.member(0).outcome.step, 1'000'000);
}

// Where nobody waits for all, a worker whose pod is deleted does not take the others with it.
TEST(ServerTraining, AWorkerThatIsNotNeededStopsAlone) {
  for (const bool backups : {false, true}) {
    v1::TrainingSpec spec = server_spec(
        400, 3, backups ? v1::ParameterServerSpec::SYNCHRONOUS : v1::ParameterServerSpec::ASYNCHRONOUS);
    if (backups) spec.mutable_parameter_server()->set_gradients_per_step(2);
    if (backups) spec.mutable_parameter_server()->set_units_per_step(2);
    const pserver::Unit units = 400 * spec.parameter_server().units_per_step();
    ServerJob server_job(spec, 0);
    std::promise<void> computes;
    const std::shared_future<void> last_computes = computes.get_future().share();
    server_job.servers.before_commit = [&](int rank, pserver::Unit unit) {
      auto& leaving = server_job.job.member(2);
      if (rank == 2) {
        leaving.stop.request();
        computes.set_value();  // it leaves with the answer to this commit
        return;
      }
      // The update that its gradient waits for may not wait for it to leave.
      EXPECT_EQ(last_computes.wait_for(std::chrono::seconds(20)), std::future_status::ready);
      // Else the others may have done everything before it goes.
      if (unit > 30) {
        EXPECT_TRUE(leaving.membership->wait_until_left());
      }
    };
    server_job.job.run();
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(server_job.job.member(rank).outcome.ending, Ending::kFinished);
      EXPECT_EQ(server_job.job.member(rank).outcome.step, 400);
    }
    EXPECT_EQ(server_job.job.member(2).outcome.ending, Ending::kStopped);
    EXPECT_FALSE(server_job.job.member(2).membership->leaving()->follows());
    EXPECT_EQ(applied_units(server_job), units_below(units));
  }
}

void expect_blame_of_the_server(const std::function<void(FakeServers&)>& fail) {
  ServerJob server_job(server_spec(1'000'000, 2), 0);
  for (int rank = 0; rank < 2; ++rank) {
    auto* membership = server_job.job.member(rank).membership.get();
    membership->on_fault = [membership](const v1::PeerFault&) {
      membership->end(absl::AbortedError("ps-0 died"));
    };
  }
  server_job.servers.before_commit = [&](int rank, pserver::Unit unit) {
    if (rank == 1 && unit > 40) fail(server_job.servers);
  };
  server_job.job.run();
  for (int rank = 0; rank < 2; ++rank) {
    const auto& member = server_job.job.member(rank);
    EXPECT_EQ(member.outcome.ending, Ending::kEnded);
    EXPECT_THAT(std::string(member.outcome.error.message()), HasSubstr("ps-0"));
    ASSERT_EQ(member.membership->faults().size(), 1u);
    EXPECT_EQ(member.membership->faults()[0].peer_member_id(), "m2");
  }
}

TEST(ServerTraining, ALostServerIsReportedWithItsName) {
  expect_blame_of_the_server([](FakeServers& servers) { servers.fail(2); });
}

TEST(ServerTraining, AServersLackOfMemoryIsNoWorkersFailure) {
  expect_blame_of_the_server([](FakeServers& servers) {
    servers.fail(collective::with_faulty_rank(absl::ResourceExhaustedError("ps-0 ended: no memory"), 2));
  });
}

// The view is drained: worker 0 takes the state, and gives it to the next view's servers.
TEST(ServerTraining, TheNextViewsServersGetWhatTheLastOnesHeld) {
  v1::TrainingSpec spec = server_spec(30, 2);
  spec.mutable_optimizer()->set_momentum(0.5);
  const Hashes unbroken = hashes_by_all_reduce(2, spec);
  ServerJob first(spec);
  FakeServers second(spec);
  first.continue_on(second);
  first.job.drain_at(1, 10, first.view(2, 1));
  first.run_to_the_end();
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(first.job.member(rank).hashes, unbroken);
  EXPECT_EQ(first.servers.updates().size() + second.updates().size(), 30u);
}

TEST(ServerTraining, ALossThatIsNotFiniteFailsWithAdvice) {
  v1::TrainingSpec spec = server_spec(50, 1);
  spec.mutable_optimizer()->set_learning_rate(1e38);
  ServerJob server_job(spec, 0);
  server_job.job.run();
  EXPECT_EQ(server_job.job.member(0).outcome.ending, Ending::kFailed);
  EXPECT_THAT(std::string(server_job.job.member(0).outcome.error.message()), HasSubstr("learningRate"));
}

}  // namespace
}  // namespace paceline::trainer
