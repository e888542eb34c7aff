#include "cli/state/run_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <stop_token>
#include <thread>

#include "base/clock.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "tests/support/no_descriptors.h"
#include "tests/support/stopped_child.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

constexpr char kJob[] = R"(apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: digits}
spec:
  replicaSpecs: {worker: {replicas: 1}}
  training:
    model: {type: mlp, hidden: [8], classes: 10}
    data: {format: csv, train: {inputs: digits.csv}}
    optimizer: {type: SGD, learningRate: 0.1}
    globalBatchSize: 64
    epochs: 1
)";

RunState running(const std::string& job, const std::string& created) {
  RunState state;
  state.job = job;
  state.phase = "Running";
  state.created = created;
  return state;
}

class RunStoreTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  RunStore store_{folder_.path() + "/state"};
};

TEST_F(RunStoreTest, ASecondRunOfOneJobGetsANameOfItsOwn) {
  const auto first = store_.create("digits"), second = store_.create("digits");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ((*first)->name(), "digits");
  EXPECT_EQ((*second)->name(), "digits-2");
}

TEST_F(RunStoreTest, ListsNewestFirst) {
  const auto a = store_.create("a"), b = store_.create("b");
  ASSERT_TRUE((*a)->write_state(running("a", "2026-01-01T00:00:00.000Z"), false).ok());
  ASSERT_TRUE((*b)->write_state(running("b", "2026-01-02T00:00:00.000Z"), true).ok());
  const auto all = store_.list();
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].name, "b");
  EXPECT_EQ((*all)[1].phase, "Running") << "its owner, this process, lives";
  ASSERT_EQ(store_.runs_of("a")->size(), 1u);
  EXPECT_EQ(store_.runs_of("a")->front().name, "a");
}

TEST_F(RunStoreTest, WithoutANameTheNewestThatGoesOnIsChosen) {
  EXPECT_EQ(store_.choose("").status().code(), absl::StatusCode::kNotFound);
  const auto older = store_.create("a");
  RunState state = running("a", "x");
  state.created = "2026-01-01T00:00:00Z";
  ASSERT_TRUE((*older)->write_state(state, true).ok());
  const auto newer = store_.create("b");
  state = running("b", "x");
  state.created = "2026-01-02T00:00:00Z";
  state.phase = "Succeeded";
  ASSERT_TRUE((*newer)->write_state(state, true).ok());
  EXPECT_EQ(store_.choose("")->name, "a");
  EXPECT_EQ(store_.choose("b")->name, "b");
}

TEST_F(RunStoreTest, ARunWhoseOwnerVanishedIsFailed) {
  {
    const auto run = store_.create("a");
    RunState state = running("a", "x");
    state.progress.eta_seconds = 3;
    state.status.replica_statuses = {{.role = Role::kWorker, .active = 2, .ready = 2}};
    ASSERT_TRUE((*run)->write_state(state, false).ok());
  }
  const auto state = store_.get("a");
  ASSERT_TRUE(state.ok());
  EXPECT_FALSE(state->progress.eta_seconds.has_value()) << "nothing is left to wait for";
  EXPECT_EQ(state->phase, "Failed");
  EXPECT_EQ(state->reason, "OwnerLost");
  ASSERT_EQ(state->status.replica_statuses.size(), 1U);
  EXPECT_EQ(state->status.replica_statuses[0].ready, 0);
  EXPECT_TRUE(store_.reopen("a").ok());
}

TEST_F(RunStoreTest, ReplacementOfARunWhoseOwnerVanishedIsOver) {
  using enum api::ReplacementOutcome;
  {
    const auto run = store_.create("a");
    RunState state = running("a", "x");
    state.status.stragglers = {{.index = 1, .action = api::StragglerAction::kReplace}};
    state.status.straggler_replacements = {{.outcome = kReplaced}, {.outcome = kUnderWay}};
    for (const char* type : {api::kCreated, "Running", api::kStraggling})
      state.status.conditions.push_back({.type = type, .status = true});
    ASSERT_TRUE((*run)->write_state(state, false).ok());
  }
  const api::Status status = store_.get("a")->status;
  EXPECT_TRUE(status.stragglers.empty());
  ASSERT_EQ(status.straggler_replacements.size(), 2U);
  EXPECT_EQ(status.straggler_replacements[0].outcome, kReplaced);
  EXPECT_EQ(status.straggler_replacements[1].outcome, kOverBefore);
  ASSERT_EQ(status.conditions.size(), 3U);
  EXPECT_TRUE(status.conditions[0].status) << "it was created";
  for (const std::size_t i : {1, 2}) {
    EXPECT_FALSE(status.conditions[i].status) << status.conditions[i].type;
    EXPECT_EQ(status.conditions[i].reason, "OwnerLost");
  }
}

TEST_F(RunStoreTest, AnOwnerThatStandsStillIsSaid) {
  const StoppedChild owner;
  const auto run = store_.create("a");
  RunState state = running("a", "x");
  state.owner_pid = owner.pid();
  ASSERT_TRUE((*run)->write_state(state, false).ok());
  EXPECT_EQ(store_.get("a")->phase, "Running");
  EXPECT_EQ(store_.get("a")->reason, "OwnerStopped");
  state.owner_pid = ::getpid();
  ASSERT_TRUE((*run)->write_state(state, false).ok());
  EXPECT_EQ(store_.get("a")->reason, "");
}

TEST_F(RunStoreTest, AStatusThatItsOwnerDoesNotWriteIsOld) {
  const auto run = store_.create("a");
  RunState state = running("a", "x");
  state.owner_pid = ::getpid();
  ASSERT_TRUE((*run)->write_state(state, false).ok());
  EXPECT_FALSE(is_stale(*store_.get("a"))) << "its owner is of a release that does not tell the time";
  const WallTime now = SystemClock().wall_now();
  state.written = format_wall_time(now);
  ASSERT_TRUE((*run)->write_state(state, false).ok());
  for (const auto skew : {-std::chrono::hours(1), std::chrono::hours(1)}) {  // of a file server
    std::filesystem::last_write_time((*run)->path("status.json"),
                                     std::filesystem::file_time_type::clock::now() + skew);
    EXPECT_FALSE(is_stale(*store_.get("a")));
  }
  state.written = format_wall_time(now - std::chrono::hours(1));
  ASSERT_TRUE((*run)->write_state(state, false).ok());
  EXPECT_EQ(store_.get("a")->reason, api::kStatusOld);
  EXPECT_TRUE(is_stale(*store_.get("a")));
  EXPECT_EQ(store_.get("a")->phase, "Running");
}

TEST_F(RunStoreTest, TheStepsThatAVanishedOwnerLostAreCounted) {
  const auto message_of = [&](const std::string& name, Step step, const std::string& checkpoint) {
    {
      const auto run = store_.create(name);
      RunState state = running(name, "x");
      state.progress.step = step;
      state.checkpoint = checkpoint;
      EXPECT_TRUE((*run)->write_state(state, false).ok());
    }
    return store_.get(name)->message;
  };
  EXPECT_NE(message_of("a", 812, "c/step-000000800").find("12 steps are lost"), std::string::npos);
  const std::string unsaved = message_of("b", 812, "");
  EXPECT_NE(unsaved.find("all its steps are lost"), std::string::npos);
  EXPECT_EQ(unsaved.find("--resume"), std::string::npos) << unsaved;
  const std::string folder = folder_.path() + "/state/runs/b/checkpoints";
  const std::vector<float> weights(3);
  checkpoint::Snapshot saved;
  saved.progress = {.step = 810, .ledger_position = 8100, .schedule_step = 810};
  saved.tensors = {checkpoint::tensor_view<float>("weights", DType::kF32, {3}, weights)};
  ASSERT_TRUE(checkpoint::CheckpointStore(folder, 2).save(saved).ok());  // unheard by the owner
  EXPECT_NE(store_.get("b")->message.find("step 810 was saved: 2 steps are lost"), std::string::npos)
      << store_.get("b")->message;
  EXPECT_EQ(message_of("c", 812, "c/step-000000812").find("lost"), std::string::npos);
  EXPECT_EQ(message_of("d", 0, "").find("lost"), std::string::npos);
}

TEST_F(RunStoreTest, HowToGoOnNamesTheStateFolderThatItsUserNamed) {
  {
    const auto run = store_.create("a");
    ASSERT_TRUE((*run)->write_state(running("a", "x"), false).ok());
  }
  EXPECT_EQ(store_.get("a")->message.find("--state-dir"), std::string::npos);
  const RunStore named(store_.state_folder(), "my state");
  EXPECT_NE(named.get("a")->message.find("--resume a --state-dir 'my state'`"), std::string::npos)
      << named.get("a")->message;
}

TEST_F(RunStoreTest, RunWithADamagedStatusIsResumedListedAndRemoved) {
  for (const char* text : {"", "{torn", "[]"}) {
    {
      const auto run = store_.create("a");
      ASSERT_TRUE((*run)->write_state(running("digits", "2026-01-01T00:00:00Z"), true).ok());
      std::ofstream((*run)->path("job.yaml")) << kJob;
      std::ofstream((*run)->path("status.json")) << text;
      EXPECT_FALSE(store_.get("a").ok()) << "while it is owned, nobody knows how it is";
    }
    const auto state = store_.get("a");
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->phase, kUnknownPhase);
    EXPECT_EQ(state->reason, "StatusDamaged");
    EXPECT_NE(state->message.find("/runs/a/status.json: "), std::string::npos) << state->message;
    EXPECT_GT(state->created, "2026");
    EXPECT_EQ(store_.list()->size(), 1u);
    EXPECT_EQ(store_.runs_of("digits")->front().name, "a");
    EXPECT_TRUE(store_.reopen("a").ok());
    EXPECT_TRUE(store_.remove("a").ok());
    EXPECT_TRUE(store_.list()->empty());
  }
}

TEST_F(RunStoreTest, FolderInThePlaceOfAStatusDamagesIt) {
  (void)store_.create("a");
  std::filesystem::create_directories(store_.state_folder() + "/runs/a/status.json");
  const auto state = store_.get("a");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->phase, kUnknownPhase);
  EXPECT_NE(state->message.find("/runs/a/status.json is a folder"), std::string::npos) << state->message;
}

TEST_F(RunStoreTest, ARunWithoutAStatusIsResumedListedAndRemoved) {
  {
    const auto run = store_.create("a");
    std::ofstream((*run)->path("job.yaml")) << kJob;
    const absl::Status making = store_.get("a").status();
    EXPECT_EQ(making.code(), absl::StatusCode::kNotFound);
    EXPECT_NE(making.message().find("is just being made"), std::string::npos) << making;
    EXPECT_TRUE(store_.list()->empty()) << "while it is made, nobody knows how it is";
  }
  const auto state = store_.get("a");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->phase, "Failed");
  EXPECT_EQ(state->reason, "OwnerLost");
  EXPECT_EQ(store_.runs_of("digits")->front().name, "a");
  EXPECT_TRUE(store_.reopen("a").ok());
  EXPECT_TRUE(store_.remove("a").ok());
  EXPECT_TRUE(store_.list()->empty());
}

TEST_F(RunStoreTest, AFolderThatIsNoRunsIsSaidToBeNone) {
  std::filesystem::create_directories(store_.state_folder() + "/runs/bare");
  (void)store_.create("locked");  // ended before it had written its job
  for (const std::string name : {"bare", "locked"}) {
    const absl::Status status = store_.get(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_NE(status.message().find("/runs/" + name + " is no run's folder"), std::string::npos) << status;
    EXPECT_EQ(store_.remove(name).code(), absl::StatusCode::kNotFound) << "nobody's work is deleted";
  }
  EXPECT_TRUE(store_.list()->empty());
}

TEST_F(RunStoreTest, RunOfAProgramOfItsOwnIsNotSaidToGoOn) {
  for (const bool trains : {false, true}) {
    const std::string name = trains ? "trains" : "runs";
    {
      const auto run = store_.create(name);
      ASSERT_TRUE((*run)->write_state(running(name, "x"), false).ok());
      std::ofstream(folder_.path() + "/state/runs/" + name + "/job.yaml")
          << "spec:\n  replicaSpecs: {}\n"
          << (trains ? "  training:\n    steps: 1\n" : "");
    }
    const auto state = store_.get(name);
    ASSERT_TRUE(state.ok());
    EXPECT_EQ(state->message.find("--resume") != std::string::npos, trains) << state->message;
  }
}

TEST_F(RunStoreTest, AskingDoesNotKeepAnOwnerOut) {
  {
    const auto run = store_.create("a");
    ASSERT_TRUE((*run)->write_state(running("a", "x"), false).ok());
  }
  std::jthread asker([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) (void)store_.get("a");
  });
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(store_.reopen("a").ok()) << "attempt " << i;
}

TEST_F(RunStoreTest, AnOwnedRunIsNeitherRemovedNorReopened) {
  const auto run = store_.create("a");
  ASSERT_TRUE((*run)->write_state(running("a", "x"), false).ok());
  EXPECT_EQ(store_.remove("a").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_.reopen("a").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RunStoreTest, RemoveRemovesEverything) {
  {
    const auto run = store_.create("a");
    ASSERT_TRUE((*run)->write_state(running("a", "x"), false).ok());
    std::ofstream((*run)->path("metrics.jsonl")) << "{}\n";
  }
  EXPECT_TRUE(store_.remove("a").ok());
  EXPECT_FALSE(std::filesystem::exists(store_.state_folder() + "/runs/a"));
  EXPECT_EQ(store_.get("a").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RunStoreTest, RunBehindALinkIsNotRemoved) {
  {
    const auto run = store_.create("a");
    ASSERT_TRUE((*run)->write_state(running("a", "x"), false).ok());
    std::ofstream((*run)->path("metrics.jsonl")) << "{}\n";
  }
  const std::string link = store_.state_folder() + "/runs/a", target = folder_.path() + "/elsewhere";
  std::filesystem::rename(link, target);
  std::filesystem::create_directory_symlink(target, link);
  EXPECT_TRUE(absl::IsFailedPrecondition(store_.remove("a")));
  EXPECT_TRUE(std::filesystem::exists(target + "/metrics.jsonl"));
  EXPECT_TRUE(store_.get("a").ok());
}

TEST_F(RunStoreTest, NamesThatLeaveTheFolderAreRefused) {
  for (const char* name : {"", ".", "..", "a/b", "../x", "a\nb", "\x1b[31m", "\xff"}) {
    EXPECT_EQ(store_.create(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_FALSE(store_.get(name).ok()) << name;
    EXPECT_FALSE(store_.remove(name).ok()) << name;
  }
}

TEST_F(RunStoreTest, AChosenNameIsTakenAsItIsOrRefused) {
  const auto chosen = store_.create_named("Trial_2.b-1");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ((*chosen)->name(), "Trial_2.b-1");
  const absl::Status taken = store_.create_named("Trial_2.b-1").status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(taken.message().find("choose another name"), absl::string_view::npos) << taken;
  EXPECT_FALSE(std::filesystem::exists(store_.state_folder() + "/runs/Trial_2.b-1-2"));
  const std::string longest(RunStore::kMaxNameBytes, 'x');
  EXPECT_TRUE(store_.create_named(longest).ok());
  for (const std::string& name :
       {std::string(), longest + "x", std::string("a b"), std::string("-x"), std::string(".x"),
        std::string("a/b"), std::string("ä"), std::string("a\nb"), std::string("a*"), std::string("$(x)")}) {
    const absl::Status status = store_.create_named(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_NE(status.message().find("allowed: 1 to 63 letters"), absl::string_view::npos) << status;
  }
}

TEST_F(RunStoreTest, TakingARunOverChangesNothingOfIt) {
  {
    const auto run = store_.create("a");
    RunState state = running("a", "x");
    state.phase = "Stopped";
    ASSERT_TRUE((*run)->write_last_state(state).ok());
  }
  const auto run = store_.reopen("a");
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(std::filesystem::exists((*run)->path("reserve")));
  ASSERT_TRUE((*run)->make_reserve().ok());
  EXPECT_TRUE(std::filesystem::exists((*run)->path("reserve")));
  (*run)->drop_reserve();
  EXPECT_FALSE(std::filesystem::exists((*run)->path("reserve")));
}

TEST_F(RunStoreTest, RoomForTheLastStateIsKeptUntilItIsWritten) {
  const auto run = store_.create("a");
  EXPECT_GE(std::filesystem::file_size((*run)->path("reserve")), 64u << 10);
  ASSERT_TRUE((*run)->write_last_state(running("a", "x")).ok());
  EXPECT_FALSE(std::filesystem::exists((*run)->path("reserve")));
}

TEST_F(RunStoreTest, ADiscardedRunLeavesNothing) {
  (*store_.create("a"))->discard();
  EXPECT_TRUE(std::filesystem::is_empty(store_.state_folder() + "/runs"));
}

TEST_F(RunStoreTest, AStateFolderThatIsAFileIsNotAMissingRun) {
  std::ofstream(store_.state_folder()) << "x";
  EXPECT_EQ(store_.create("a").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_.list().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_.choose("").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RunStoreTest, NotFoundNamesWhatThereIs) {
  const auto run = store_.create("alpha");
  ASSERT_TRUE((*run)->write_state(running("alpha", "x"), false).ok());
  EXPECT_NE(store_.get("alpah").status().ToString().find("alpha"), std::string::npos);
}

TEST_F(RunStoreTest, WithoutDescriptorsNoRunIsHiddenOrCalledLost) {
  const auto run = store_.create("digits");
  ASSERT_TRUE((*run)->write_state(running("digits", "2026-01-01T00:00:00.000Z"), true).ok());
  for (std::size_t more = 0; more < 4; ++more) {  // as many are free for list(), which opens the folder, too
    const NoDescriptors few(more);
    const auto all = store_.list();
    if (all.ok()) {
      ASSERT_EQ(all->size(), 1u) << more;
      EXPECT_EQ((*all)[0].phase, "Running") << more;
    } else {
      EXPECT_TRUE(absl::IsResourceExhausted(all.status())) << more << " " << all.status();
    }
    EXPECT_EQ(all.ok(), more >= 2) << more;
    const auto one = store_.get("digits");
    EXPECT_EQ(one.ok(), more >= 1) << more;
    EXPECT_EQ(absl::IsResourceExhausted(one.status()), !one.ok()) << more << " " << one.status();
  }
}

// A run that can't be read, and one that was given a name that Paceline gives none.
TEST_F(RunStoreTest, WhatIsLeftOutOfTheListIsSaid) {
  const std::string runs = store_.state_folder() + "/runs/", odd = "b\x1b[31m";
  (void)store_.create("a");
  std::filesystem::create_symlink("status.json", runs + "a/status.json");
  std::vector<absl::Status> left_out;
  EXPECT_TRUE(store_.list(&left_out)->empty());
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_NE(left_out[0].message().find("run \"a\" can't be read: open "), std::string::npos) << left_out[0];
  for (const absl::Status& why : {store_.choose("").status(), store_.get("a").status()})
    EXPECT_EQ(why.code(), absl::StatusCode::kUnavailable) << why;
  const absl::Status none = store_.runs_of("digits").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kUnavailable) << none;
  EXPECT_NE(none.message().find("job \"digits\" has no run"), std::string::npos) << none;
  EXPECT_EQ(store_.get("b").status().message().find("there are no runs"), std::string::npos);

  std::filesystem::remove_all(runs + "a");
  ASSERT_TRUE((*store_.create("b"))->write_state(running("digits", "x"), true).ok());
  std::filesystem::rename(runs + "b", runs + odd);
  left_out.clear();
  EXPECT_TRUE(store_.list(&left_out)->empty());
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out[0].code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(left_out[0].message().find("as in `mv -- $'" + runs + "b\\x1b[31m' "), std::string::npos)
      << left_out[0];
  for (const absl::Status& why : {store_.get(odd).status(), store_.remove(odd)}) EXPECT_EQ(why, left_out[0]);
  EXPECT_TRUE(std::filesystem::exists(runs + odd));
}

TEST_F(RunStoreTest, RubbishInTheFolderIsSkipped) {
  std::filesystem::create_directories(store_.state_folder() + "/runs/odd");
  std::ofstream(store_.state_folder() + "/runs/odd/status.json") << "{torn";
  EXPECT_TRUE(store_.list()->empty());
}

TEST(StateFolderTest, OptionThenXdgThenHome) {
  EXPECT_EQ(state_folder("/x/../y", "/xdg", "/home").value(), "/y");
  EXPECT_EQ(state_folder("", "/xdg", "/home").value(), "/xdg/paceline");
  EXPECT_EQ(state_folder("", "relative", "/home").value(), "/home/.local/state/paceline");
  EXPECT_EQ(state_folder("", nullptr, nullptr).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace paceline::cli
