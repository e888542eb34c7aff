// What worker 0 saves of the state that parameter servers hold, the test's, and how a training goes on from
// it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/trainer.h"
#include "tests/support/assert_ok.h"
#include "tests/support/fake_clock.h"
#include "tests/support/server_job.h"
#include "tests/support/slow_files.h"
#include "tests/support/temporary_folder.h"

namespace paceline::trainer {
namespace {

using ::testing::UnorderedElementsAre;

TEST(ServerSaves, AStopOfOneIsAStopOfAllAndRank0SavesWhatTheServersHold) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = server_spec(1'000'000, 2);
  spec.mutable_checkpoint()->set_directory(folder.path());
  ServerJob server_job(spec, 0);
  auto& stopping = server_job.job.member(1);
  stopping.at_step(20, [&] { stopping.stop.request(); });
  server_job.job.run();
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(server_job.job.member(rank).outcome.ending, Ending::kStopped);
    EXPECT_EQ(server_job.job.member(rank).outcome.step, 21);
  }
  PL_ASSERT_OK(saved, checkpoint::CheckpointStore(folder.path(), 1).peek_latest());
  EXPECT_EQ(saved->progress.step, 21);
  EXPECT_THAT(server_job.servers.left(), UnorderedElementsAre(0, 1));
}

// The job is stopped by its coordinator, or another worker was lost: the servers are still there.
TEST(ServerSaves, AnEvictedRank0SavesWhatTheServersHold) {
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
    PL_ASSERT_OK(saved, checkpoint::CheckpointStore(folder.path(), 1).peek_latest());
    EXPECT_GE(saved->progress.step, 20);
    EXPECT_LE(saved->progress.step, 21);
    EXPECT_THAT(server_job.servers.left(), UnorderedElementsAre(0, 1)) << "with a goodbye";
  }
}

// Of held-out samples that can't be read: worker 0 alone evaluates.
TEST(ServerSaves, AnEvaluationThatFailsIsSavedFirst) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = server_spec(6, 2);
  spec.mutable_checkpoint()->set_directory(folder.path());
  ServerJob server_job(spec, [](const v1::TrainingSpec&) -> absl::StatusOr<Workload> {
    Workload workload = workload_of<StepDataset, StepProgram>(kStepTrain, 0);
    workload.data.test = std::make_shared<FailingDataset>(20, 0);
    return workload;
  });
  server_job.job.run();
  EXPECT_EQ(server_job.job.member(0).outcome.ending, Ending::kFailed);
  PL_ASSERT_OK(saved, checkpoint::CheckpointStore(folder.path(), 1).peek_latest());
  EXPECT_EQ(saved->progress.step, 6);
}

// Collecting the first snapshot is held until four more steps are applied: a save that the training waited
// for would end at the time limit.
TEST(ServerSaves, CheckpointsAreWrittenWhileTrainingGoesOn) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = server_spec(12, 2);
  spec.mutable_checkpoint()->set_directory(folder.path());
  spec.mutable_checkpoint()->set_every_steps(4);
  spec.mutable_checkpoint()->set_keep(5);
  ServerJob server_job(spec, 0);
  server_job.servers.hold_snapshots(true);
  auto& first = server_job.job.member(0);
  first.at_step(8, [&] { server_job.servers.hold_snapshots(false); });
  server_job.run_to_the_end();
  const auto told = first.membership->checkpoints();
  ASSERT_GE(told.size(), 2u);
  EXPECT_EQ(told[0].step(), 4);
  EXPECT_EQ(told[0].error(), "");
  EXPECT_EQ(told.back().step(), 12);
  PL_ASSERT_OK(state, checkpoint::CheckpointStore(folder.path(), 1).load_latest());
  // What comes from the servers; the state's header and tensors, and its sync; the manifest and its sync.
  EXPECT_EQ(first.stop.moves(), told.size() * (1 + (1 + state->tensors.size() + 1) + (1 + 1)))
      << "a save that goes on";
  for (const auto& each : told) EXPECT_EQ(each.error(), "") << "step " << each.step();
  EXPECT_TRUE(server_job.job.member(1).membership->checkpoints().empty());
}

// How long the servers will be there for it: they live as long as a finished job's chief does.
TEST(ServerSaves, TheLastSaveHasTheTimeThatItsServersServeOn) {
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
TEST(ServerSaves, AStateThatIsLostIsNotWaitedFor) {
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

TEST(ServerSaves, ACheckpointContinuesWithServersAndWithAllReduceToTheBit) {
  for (const int type : {v1::OptimizerSpec::SGD, v1::OptimizerSpec::ADAM}) {
    v1::TrainingSpec spec = server_spec(24, 2);
    spec.mutable_optimizer()->set_type(static_cast<v1::OptimizerSpec::Type>(type));
    spec.mutable_optimizer()->set_momentum(0.5);
    spec.mutable_optimizer()->set_beta1(0.9);
    spec.mutable_optimizer()->set_beta2(0.999);
    spec.mutable_optimizer()->set_epsilon(1e-8);
    const Hashes unbroken = hashes_by_all_reduce(2, spec);
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
          hashes_by_all_reduce(2, spec);
        }
        spec.mutable_checkpoint()->set_resume(true);
        spec.set_steps(24);
        Hashes rest;
        if (servers_then) {
          ServerJob then(spec);
          then.run_to_the_end();
          rest = then.job.member(1).hashes;
        } else {
          rest = hashes_by_all_reduce(2, spec);
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

// Two seconds pass before each of the two newest manifests is read, and they are not there. What is read then
// is the state of the third, which has no parts.
TEST(ServerSaves, ServersAreToldThatAStateIsBeingRead) {
  const TemporaryFolder folder;
  v1::TrainingSpec spec = server_spec(12, 2);
  spec.mutable_checkpoint()->set_directory(folder.path());
  spec.mutable_checkpoint()->set_every_steps(4);
  spec.mutable_checkpoint()->set_keep(3);
  hashes_by_all_reduce(2, spec);
  std::set<std::string> slow;
  for (const char* step : {"000000008", "000000012"}) {
    slow.insert(str_cat(folder.path(), "/step-", step, "/manifest.json"));
    ASSERT_TRUE(std::filesystem::remove(*slow.rbegin()));
  }
  spec.mutable_checkpoint()->set_resume(true);
  FakeClock clock;
  SlowFiles files([&](const std::string& path) {
    if (slow.erase(path) > 0) clock.advance(std::chrono::seconds(2));
  });
  ServerJob server_job(spec, step_workload(96, 0), &clock);
  server_job.job.member(0).files = &files;
  server_job.run_to_the_end();
  EXPECT_TRUE(slow.empty());
  EXPECT_EQ(server_job.job.member(1).hashes.begin()->first, 4);
  EXPECT_EQ(server_job.servers.told_loading(), 1);
}

// A stop in the middle of an asynchronous step: the units that were applied are not applied again.
TEST(ServerSaves, AnAsynchronousJobContinuesWithTheUnitsThatAreMissing) {
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
    PL_ASSERT_OK(loaded, checkpoint::CheckpointStore(folder.path(), 1).load_latest());
    const StateFormat format(spec);
    std::vector<float> weights(48);
    PL_ASSERT_OK(position, format.restore(*loaded, {weights, {}}));
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

}  // namespace
}  // namespace paceline::trainer
