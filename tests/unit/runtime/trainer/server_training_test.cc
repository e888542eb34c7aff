// A trainer's workers with parameter servers that are the test's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/trainer.h"
#include "tests/support/fake_servers.h"
#include "tests/support/step_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_job.h"

namespace paceline::trainer {
namespace {

using paceline::testing::FakeServers;
using paceline::testing::step_spec;
using paceline::testing::step_workload;
using paceline::testing::TemporaryFolder;
using paceline::testing::ThreadJob;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kTrain = 96, kTest = 20;
using Hashes = std::map<Step, std::uint64_t>;

v1::TrainingSpec server_spec(
    std::int64_t steps, int workers,
    v1::ParameterServerSpec::Synchronization mode = v1::ParameterServerSpec::SYNCHRONOUS) {
  v1::TrainingSpec spec = step_spec(steps, 32);
  v1::ParameterServerSpec& servers = *spec.mutable_parameter_server();
  servers.set_synchronization(mode);
  servers.set_workers(workers);
  servers.set_servers(1);
  servers.set_units_per_step(workers);
  servers.set_gradients_per_step(workers);
  servers.set_overlap(true);
  servers.set_timeout_ms(20'000);
  return spec;
}

// Workers m0, m1, ... and, last in the view, one server that is not run here.
class ServerJob {
 public:
  ServerJob(const v1::TrainingSpec& spec, std::int64_t test_samples = kTest)
      : servers(spec),
        job(static_cast<int>(spec.parameter_server().workers()), spec, step_workload(kTrain, test_samples)) {
    std::vector<int> ranks;
    for (int rank = 0; rank < job.size(); ++rank) {
      job.member(rank).connect_servers = servers.connector();
      ranks.push_back(rank);
    }
    ranks.push_back(job.size());
    v1::View view = job.view(1, ranks);
    view.mutable_members(job.size())->set_role(v1::ROLE_PS);
    job.send_view(view);
  }
  void run_to_the_end() {
    job.run();
    for (int rank = 0; rank < job.size(); ++rank) {
      EXPECT_EQ(job.member(rank).outcome.ending, Ending::kFinished) << job.member(rank).outcome.error;
    }
  }

  FakeServers servers;
  ThreadJob job;
};

Hashes all_reduce(int world, v1::TrainingSpec spec) {
  spec.clear_parameter_server();
  ThreadJob job(world, spec, step_workload(kTrain, kTest));
  std::vector<int> ranks;
  for (int rank = 0; rank < world; ++rank) ranks.push_back(rank);
  job.send_view(job.view(1, ranks));
  job.run();
  return job.member(0).hashes;
}

TEST(ServerTraining, SynchronousHasAllReducesWeightsAtEveryStepOnAllWorkers) {
  for (const int workers : {1, 2, 3}) {
    const v1::TrainingSpec spec = server_spec(30, workers);
    ServerJob server_job(spec);
    server_job.run_to_the_end();
    const Hashes expected = all_reduce(workers, spec);
    ASSERT_EQ(expected.size(), 31u);
    for (int rank = 0; rank < workers; ++rank) {
      EXPECT_EQ(server_job.job.member(rank).hashes, expected) << "rank " << rank << " of " << workers;
      EXPECT_EQ(server_job.job.member(rank).outcome.step, 30);
    }
  }
}

TEST(ServerTraining, WithoutOverlapAndInMicroBatchesTheWeightsAreTheSame) {
  v1::TrainingSpec spec = server_spec(12, 2);
  const Hashes expected = all_reduce(2, spec);
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
    std::multiset<pserver::Unit> units;
    for (const pserver::Update& update : server_job.servers.updates()) {
      for (const pserver::Gradient& gradient : update.gradients) units.insert(gradient.unit);
    }
    std::multiset<pserver::Unit> expected;
    for (pserver::Unit unit = 0; unit < 60; ++unit) expected.insert(unit);
    EXPECT_EQ(units, expected) << "mode " << mode;
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
  for (int rank = 0; rank < 3; ++rank) {
    v1::Heartbeat beat;
    server_job.job.member(rank).membership->progress().collect(&beat);
    EXPECT_EQ(beat.step(), 15) << "rank " << rank;
  }
}

TEST(ServerTraining, HashesAreNotComparedWhereWorkersReadDifferentVersions) {
  ServerJob server_job(server_spec(10, 2, v1::ParameterServerSpec::ASYNCHRONOUS));
  server_job.run_to_the_end();
  EXPECT_TRUE(server_job.job.member(0).hashes.empty());
  v1::Heartbeat beat;
  server_job.job.member(0).membership->progress().collect(&beat);
  EXPECT_EQ(beat.weights_hash_step(), 0);
}

TEST(ServerTraining, Rank0AloneTellsLossesAndEvaluations) {
  v1::TrainingSpec spec = server_spec(8, 2);
  spec.mutable_evaluation()->set_every_steps(4);
  ServerJob server_job(spec);
  server_job.run_to_the_end();
  v1::Heartbeat beat, other;
  server_job.job.member(0).membership->progress().collect(&beat);
  server_job.job.member(1).membership->progress().collect(&other);
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

TEST(ServerTraining, AStopOfOneIsAStopOfAllAndRank0SavesWhatTheServersHold) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = server_spec(1'000'000, 2);
  spec.mutable_checkpoint()->set_directory(folder.path());
  ServerJob server_job(spec, 0);
  auto& stopping = server_job.job.member(1);
  const auto heard = stopping.options.on_hash;
  stopping.options.on_hash = [&stopping, heard](Step step, std::uint64_t hash) {
    heard(step, hash);
    if (step == 20) stopping.stop.request();
  };
  server_job.job.run();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(server_job.job.member(rank).outcome.ending, Ending::kStopped);
    EXPECT_EQ(server_job.job.member(rank).outcome.step, 21);
  }
  const auto saved = checkpoint::CheckpointStore(folder.path(), 1).peek_latest();
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->progress.step, 21);
  EXPECT_THAT(server_job.servers.left(), UnorderedElementsAre(0, 1));
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
    server_job.servers.before_commit = [&](int rank, pserver::Unit unit) {
      auto& leaving = server_job.job.member(2);
      if (rank == 2) leaving.stop.request();
      // Else the others may have done everything before it goes.
      if (rank != 2 && unit > 30) {
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
    std::multiset<pserver::Unit> applied, expected;
    for (const pserver::Update& update : server_job.servers.updates()) {
      for (const pserver::Gradient& gradient : update.gradients) applied.insert(gradient.unit);
    }
    for (pserver::Unit unit = 0; unit < units; ++unit) expected.insert(unit);
    EXPECT_EQ(applied, expected);
  }
}

// The job is stopped by its coordinator, or another worker was lost: the servers are still there.
TEST(ServerTraining, AnEvictedRank0SavesWhatTheServersHold) {
  for (const bool patience_ends : {false, true}) {
    const TemporaryFolder folder;
    v1::TrainingSpec spec = server_spec(1'000'000, 2);
    spec.mutable_checkpoint()->set_directory(folder.path());
    ServerJob server_job(spec, 0);
    server_job.servers.before_commit = [&](int rank, pserver::Unit unit) {
      if (unit != 40 || rank != 0) return;
      for (int each = 0; each < 2; ++each) {
        auto& member = server_job.job.member(each);
        if (patience_ends) {
          member.stop.expire();
        } else {
          member.membership->end(absl::AbortedError("the user stops the job"));
        }
      }
    };
    server_job.job.run();
    for (int rank = 0; rank < 2; ++rank) {
      const Outcome& outcome = server_job.job.member(rank).outcome;
      EXPECT_EQ(outcome.ending, patience_ends ? Ending::kStopped : Ending::kEnded) << outcome.error;
    }
    const auto saved = checkpoint::CheckpointStore(folder.path(), 1).peek_latest();
    ASSERT_TRUE(saved.ok()) << saved.status();
    EXPECT_GE(saved->progress.step, 20);
    EXPECT_LE(saved->progress.step, 21);
    EXPECT_THAT(server_job.servers.left(), UnorderedElementsAre(0, 1)) << "with a goodbye";
  }
}

// Collecting the first snapshot is held until four more steps are applied: a save that the training waited
// for would end at the time limit.
TEST(ServerTraining, CheckpointsAreWrittenWhileTrainingGoesOn) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = server_spec(12, 2);
  spec.mutable_checkpoint()->set_directory(folder.path());
  spec.mutable_checkpoint()->set_every_steps(4);
  spec.mutable_checkpoint()->set_keep(5);
  ServerJob server_job(spec, 0);
  server_job.servers.hold_snapshots(true);
  auto& first = server_job.job.member(0);
  const auto heard = first.options.on_hash;
  first.options.on_hash = [&](Step step, std::uint64_t hash) {
    heard(step, hash);
    if (step == 8) server_job.servers.hold_snapshots(false);
  };
  server_job.run_to_the_end();
  const auto told = first.membership->checkpoints();
  ASSERT_GE(told.size(), 2u);
  EXPECT_EQ(told[0].step(), 4);
  EXPECT_EQ(told[0].error(), "");
  EXPECT_EQ(told.back().step(), 12);
  EXPECT_TRUE(server_job.job.member(1).membership->checkpoints().empty());
}

// How long the servers will be there for it: they live as long as a finished job's chief does.
TEST(ServerTraining, TheLastSaveHasTheTimeThatItsServersServeOn) {
  enum class Case : std::uint8_t { kFinished, kStopped, kEnded };
  for (const Case how : {Case::kFinished, Case::kStopped, Case::kEnded}) {
    const TemporaryFolder folder;
    const SystemClock clock;
    v1::TrainingSpec spec = server_spec(how == Case::kFinished ? 6 : 1'000'000, 2);
    spec.mutable_checkpoint()->set_directory(folder.path());
    spec.mutable_checkpoint()->set_every_steps(1'000'000);  // none but the last
    ServerJob server_job(spec, 0);
    auto& chief = server_job.job.member(0);
    server_job.servers.before_commit = [&](int rank, pserver::Unit unit) {
      if (rank != 0 || unit != 40) return;
      if (how == Case::kStopped) chief.stop.request();
      if (how == Case::kEnded) chief.membership->end(absl::AbortedError("the user stops the job"));
      if (how == Case::kEnded) server_job.job.member(1).membership->end(absl::AbortedError("likewise"));
    };
    std::vector<Duration> limits;
    server_job.servers.before_take = [&](Deadline deadline) {
      limits.push_back(deadline.remaining(clock.now()));
    };
    server_job.job.run();
    ASSERT_EQ(limits.size(), 1u);
    EXPECT_LE(limits[0], how == Case::kFinished ? kSaveLimit : kStoppedServiceLimit);
    EXPECT_GT(limits[0], how == Case::kFinished ? kStoppedServiceLimit : kLastServiceLimit);
  }
}

// A server that hangs has a part of the state: neither a checkpoint beside the training nor the last one is
// waited for.
TEST(ServerTraining, AStateThatIsLostIsNotWaitedFor) {
  for (const bool last : {false, true}) {
    const TemporaryFolder folder;
    v1::TrainingSpec spec = server_spec(last ? 6 : 1'000'000, 2);
    spec.mutable_checkpoint()->set_directory(folder.path());
    spec.mutable_checkpoint()->set_every_steps(last ? 1'000'000 : 4);
    ServerJob server_job(spec, 0);
    server_job.servers.hold_snapshots(true);
    const auto lose_a_server = [&] {
      for (int each = 0; each < 2; ++each) {
        server_job.job.member(each).membership->end(absl::DataLossError("ps-0 is frozen"));
      }
    };
    server_job.servers.before_commit = [&](int rank, pserver::Unit unit) {
      if (!last && rank == 0 && unit == 40) lose_a_server();
    };
    server_job.servers.before_take = [&](Deadline) {
      if (last) lose_a_server();
    };
    server_job.job.run();
    EXPECT_EQ(server_job.servers.overdue(), 0);
    EXPECT_EQ(server_job.job.member(0).outcome.checkpoint_path, "");
    EXPECT_EQ(server_job.job.member(0).outcome.ending, last ? Ending::kFinished : Ending::kEnded);
  }
}

TEST(ServerTraining, ACheckpointContinuesWithServersAndWithAllReduceToTheBit) {
  for (const int type : {v1::OptimizerSpec::SGD, v1::OptimizerSpec::ADAM}) {
    v1::TrainingSpec spec = server_spec(24, 2);
    spec.mutable_optimizer()->set_type(static_cast<v1::OptimizerSpec::Type>(type));
    spec.mutable_optimizer()->set_momentum(0.5);
    spec.mutable_optimizer()->set_beta1(0.9);
    spec.mutable_optimizer()->set_beta2(0.999);
    spec.mutable_optimizer()->set_epsilon(1e-8);
    const Hashes unbroken = all_reduce(2, spec);
    for (const bool servers_first : {true, false}) {
      for (const bool servers_then : {true, false}) {
        const TemporaryFolder folder;
        spec.mutable_checkpoint()->set_directory(folder.path());
        spec.mutable_checkpoint()->set_every_steps(10);
        spec.mutable_checkpoint()->set_resume(false);
        spec.set_steps(10);
        if (servers_first) {
          ServerJob(spec).run_to_the_end();
        } else {
          all_reduce(2, spec);
        }
        spec.mutable_checkpoint()->set_resume(true);
        spec.set_steps(24);
        Hashes rest;
        if (servers_then) {
          ServerJob then(spec);
          then.run_to_the_end();
          rest = then.job.member(1).hashes;
        } else {
          rest = all_reduce(2, spec);
        }
        ASSERT_EQ(rest.begin()->first, 10);
        for (const auto& [step, hash] : rest) {
          EXPECT_EQ(hash, unbroken.at(step))
              << "step " << step << (servers_first ? ", servers" : ", all-reduce") << " then "
              << (servers_then ? "servers" : "all-reduce");
        }
      }
    }
  }
}

// A stop in the middle of an asynchronous step: the units that were applied are not applied again.
TEST(ServerTraining, AnAsynchronousJobContinuesWithTheUnitsThatAreMissing) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = server_spec(1'000'000, 3, v1::ParameterServerSpec::ASYNCHRONOUS);
  spec.mutable_checkpoint()->set_directory(folder.path());
  std::multiset<pserver::Unit> units;
  const auto note = [&](const FakeServers& servers) {
    for (const pserver::Update& update : servers.updates()) {
      for (const pserver::Gradient& gradient : update.gradients) units.insert(gradient.unit);
    }
  };
  {
    ServerJob job(spec, 0);
    job.servers.before_commit = [&](int rank, pserver::Unit unit) {
      if (unit > 50) job.job.member(rank).stop.request();
    };
    job.job.run();
    EXPECT_EQ(job.job.member(0).outcome.ending, Ending::kStopped);
    // What was committed after worker 0's snapshot is lost with the servers.
    const auto loaded = checkpoint::CheckpointStore(folder.path(), 1).load_latest();
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const StateFormat format(spec);
    std::vector<float> weights(48);
    const auto position = format.restore(*loaded, {weights, {}});
    ASSERT_TRUE(position.ok()) << position.status();
    const auto& applied = position->units;
    for (pserver::Unit unit = 0; unit < applied.below; ++unit) {
      if (std::ranges::find(applied.missing, unit) == applied.missing.end()) units.insert(unit);
    }
    EXPECT_EQ(position->optimizer_steps, applied.count());
    spec.set_steps(position->step + 30);
  }
  spec.mutable_checkpoint()->set_resume(true);
  ServerJob job(spec, 0);
  job.run_to_the_end();
  note(job.servers);
  std::multiset<pserver::Unit> expected;
  for (pserver::Unit unit = 0; unit < 3 * spec.steps(); ++unit) expected.insert(unit);
  EXPECT_EQ(units, expected);
}

TEST(ServerTraining, ALostServerIsReportedWithItsName) {
  ServerJob server_job(server_spec(1'000'000, 2), 0);
  for (int rank = 0; rank < 2; ++rank) {
    auto* membership = server_job.job.member(rank).membership.get();
    membership->on_fault = [membership](const v1::PeerFault&) {
      membership->end(absl::AbortedError("ps-0 died"));
    };
  }
  server_job.servers.before_commit = [&](int rank, pserver::Unit unit) {
    if (rank == 1 && unit > 40) server_job.servers.fail(2);
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

// The view is drained: worker 0 takes the state, and gives it to the next view's servers.
TEST(ServerTraining, TheNextViewsServersGetWhatTheLastOnesHeld) {
  v1::TrainingSpec spec = server_spec(30, 2);
  spec.mutable_optimizer()->set_momentum(0.5);
  const Hashes unbroken = all_reduce(2, spec);
  ServerJob first(spec);
  FakeServers second(spec);
  v1::View next = first.job.view(2, {0, 1, 2});
  next.mutable_members(2)->set_role(v1::ROLE_PS);
  auto& told = first.job.member(1);
  const auto heard = told.options.on_hash;
  told.options.on_hash = [&](Step step, std::uint64_t hash) {
    heard(step, hash);
    if (step != 10) return;
    told.membership->drain(Generation{1});
    first.job.send_view(next);
  };
  for (int rank = 0; rank < 2; ++rank) {
    auto& member = first.job.member(rank);
    member.connect_servers = [&, old = member.connect_servers, fresh = second.connector()](
                                 collective::Fabric& fabric, const collective::Group& group, auto&&... rest) {
      return group.generation == Generation{1} ? old(fabric, group, rest...) : fresh(fabric, group, rest...);
    };
  }
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
