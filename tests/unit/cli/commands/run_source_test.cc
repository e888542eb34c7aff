#include "cli/commands/run_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/cluster/call.h"
#include "cli/cluster/job_view.h"
#include "cli/state/owner_process.h"
#include "cli/state/run_edits.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "tests/support/fake_clock.h"
#include "tests/support/stopped_child.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

constexpr char kJob[] = R"(apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: digits}
spec:
  replicaSpecs: {worker: {replicas: 3}}
  training:
    model: {type: mlp, hidden: [8], classes: 10}
    data: {format: csv, train: {inputs: digits.csv}}
    optimizer: {type: SGD, learningRate: 0.1}
    globalBatchSize: 64
    epochs: 1
)";

class RunSourceTest : public ::testing::Test {
 protected:
  RunSourceTest() { write("Running", ""); }
  void write(const std::string& phase, const std::string& reason) {
    RunState state;
    state.job = "digits";
    state.phase = phase;
    state.reason = reason;
    state.created = "2026-01-01T00:00:00.000Z";
    state.progress.step = 7;
    state.status.restarts.total = 2;
    state.status.restarts.attempt = 1;
    state.status.replica_statuses = {{.role = Role::kWorker, .ready = 3}};
    EXPECT_TRUE(run_->write_state(state, false).ok());
  }
  JobView view() { return read_job(source_.job("default", "mine").value()); }

  TemporaryFolder folder_;
  RunStore store_{folder_.path()};
  std::unique_ptr<OwnedRun> run_ = *store_.create_named("mine");
  bool written_ = write_file_atomically(run_->path("job.yaml"), kJob).ok();
  std::ostringstream out_;
  FakeClock clock_;
  const Terminal terminal_;
  std::function<void()> on_pause_ = [] {};  // what happens while the command waits
  kube::Pause pause_ = [this](Duration, const std::stop_token&) {
    on_pause_();
    return true;
  };
  RunSource source_{store_, clock_, out_, pause_};

  void log(const std::string& pod, const std::string& text) {
    std::filesystem::create_directories(run_->path("logs"));
    ASSERT_TRUE(write_file_atomically(run_->path("logs/" + pod + ".log"), text).ok());
  }
  Call call_to(std::ostream& out, std::ostream& err) {
    return {.jobs = source_,
            .program = "paceline",
            .clock = clock_,
            .terminal = terminal_,
            .out = out,
            .err = err,
            .pause = pause_};
  }
  // Returns what `delete --finished` says.
  std::string delete_finished() {
    std::ostringstream out, err;
    Call call = call_to(out, err);
    EXPECT_TRUE(delete_jobs(call, {.finished = true}).ok()) << err.str();
    return out.str();
  }
  // Prints nothing where it fails.
  std::string logs(const LogsOptions& options, absl::StatusCode code = absl::StatusCode::kOk) {
    std::ostringstream out, err;
    Call call = call_to(out, err);
    EXPECT_EQ(job_logs(call, options).code(), code) << err.str();
    return out.str();
  }
};

TEST_F(RunSourceTest, ARunIsAnObjectAsAServerHasIt) {
  const JobView running = view();
  EXPECT_EQ(running.name, "mine");
  EXPECT_EQ(running.status.phase, api::Phase::kRunning);
  EXPECT_EQ(running.status.restarts.total, 2);
  EXPECT_EQ(running.wanted, 3);
  EXPECT_EQ(running.ready, 3);
  EXPECT_TRUE(running.created);
  ASSERT_TRUE(running.run);
  EXPECT_EQ(running.run->progress.step, 7);
  EXPECT_EQ(running.run->job, "digits");
  EXPECT_EQ(source_.list_jobs("")->objects.size(), 1u);
  write("Stopped", "Stopped");
  EXPECT_EQ(view().status.phase, api::Phase::kFailed);
  EXPECT_EQ(view().status.reason, "Stopped");
  EXPECT_EQ(view().run->phase, "Stopped");
}

TEST_F(RunSourceTest, TheSecondOfTwoEditsBetweenTwoLooksCounts) {
  RunEdits edits(run_->folder());
  ASSERT_TRUE(edits.look());
  for (const std::int64_t workers : {2, 3, 2, 3}) {  // a file may have the number of the one before the last
    ASSERT_TRUE(edit_run(store_, "mine", {.suspend = true, .workers = workers}, "edit").ok());
    ASSERT_TRUE(edit_run(store_, "mine", {.suspend = false, .workers = workers}, "edit").ok());
    const auto edit = edits.look();
    ASSERT_TRUE(edit);
    EXPECT_EQ(edit->workers, workers);
    EXPECT_EQ(edit->suspend, false);
  }
}

TEST_F(RunSourceTest, EditsAreForTheOwner) {
  RunEdits edits(run_->folder());
  const auto first = edits.look();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->suspend, false);
  EXPECT_EQ(first->workers, 3);
  EXPECT_FALSE(edits.look());
  for (const bool suspend : {true, false}) {
    const kube::Json patch = {{"spec", {{"runPolicy", {{"suspend", suspend}}}}}};
    ASSERT_TRUE(source_.patch("default", "mine", patch, "edit").ok());
    EXPECT_EQ(view().suspended, suspend);
    const auto edit = edits.look();
    ASSERT_TRUE(edit);
    EXPECT_EQ(edit->suspend, suspend);
    EXPECT_EQ(edit->workers, 3);
  }
  const kube::Json sized = {{"spec", {{"replicaSpecs", {{"Worker", {{"replicas", 2}}}}}}}};
  ASSERT_TRUE(source_.patch("default", "mine", sized, "scale").ok());
  EXPECT_EQ(view().wanted, 2);
  EXPECT_EQ(edits.look()->workers, 2);
  ASSERT_TRUE(edit_run(store_, "mine", {.suspend = false, .workers = 2}, "edit").ok());
  EXPECT_FALSE(edits.look()) << "the job says so already";
  write("Succeeded", "");
  EXPECT_TRUE(absl::IsFailedPrecondition(edit_run(store_, "mine", {.suspend = true}, "suspend")));
}

TEST_F(RunSourceTest, LaterRunOfTheNameIsLeftAsItIs) {
  const std::string seen = view().uid;
  write("Stopped", "Stopped");
  EXPECT_EQ(view().uid, seen);
  RunState later = store_.get("mine").value();
  later.created = "2026-01-01T00:00:00.001Z";
  ASSERT_TRUE(run_->write_state(later, false).ok());
  run_.reset();
  const kube::Json patch = {{"metadata", {{"uid", seen}}}, {"spec", {{"runPolicy", {{"suspend", true}}}}}};
  EXPECT_TRUE(absl::IsAborted(source_.patch("", "mine", patch, "suspend").status()));
  EXPECT_TRUE(absl::IsAborted(source_.remove("", "mine", seen, "").status()));
  EXPECT_TRUE(source_.remove("", "mine", view().uid, "").ok());
  EXPECT_TRUE(absl::IsNotFound(store_.get("mine").status()));
}

TEST_F(RunSourceTest, RequestsAreAnnotationsOfItsFile) {
  RunEdits edits(run_->folder());
  (void)edits.look();
  const kube::Json patch = {{"metadata",
                             {{"uid", view().uid},
                              {"annotations",
                               {{"paceline.dev/checkpoint", "now"},
                                {"paceline.dev/replace", "worker-1@now"},
                                {"example.org/other", "x"}}}}}};
  ASSERT_TRUE(source_.patch("", "mine", patch, "checkpoint").ok());
  const auto edit = edits.look();
  ASSERT_TRUE(edit.has_value());
  EXPECT_EQ(edit->requests, (std::map<std::string, std::string>{{"paceline.dev/checkpoint", "now"},
                                                                {"paceline.dev/replace", "worker-1@now"}}));
  ASSERT_TRUE(source_.patch("", "mine", patch, "checkpoint").ok());
  EXPECT_FALSE(edits.look().has_value()) << "nothing is new";
}

TEST_F(RunSourceTest, RequestThatAnotherOneReplacedIsSaidToBeSo) {
  std::ostringstream out, err;
  Call call = call_to(out, err);
  on_pause_ = [&] {
    EXPECT_TRUE(
        edit_run(store_, "mine", {.requests = {{api::kCheckpointRequest, "another's"}}}, "checkpoint").ok());
    write("Running", "");
  };
  EXPECT_TRUE(absl::IsAborted(checkpoint_job(call, "mine"))) << err.str();
}

TEST_F(RunSourceTest, EditWaitsForTheOneUnderWayAndKeepsIt) {
  const std::string path = run_->path("edit.lock");
  UniqueFd other(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(absl::IsAborted(edit_run(store_, "mine", {.suspend = true}, "suspend")));
  int looks = 0;
  on_pause_ = [&] {
    if (++looks < 3) return;
    std::string scaled = kJob;
    scaled.replace(scaled.find("replicas: 3"), 11, "replicas: 2");
    EXPECT_TRUE(write_file_atomically(run_->path("job.yaml"), scaled).ok());
    other.reset();
  };
  const kube::Json patch = {{"spec", {{"runPolicy", {{"suspend", true}}}}}};
  ASSERT_TRUE(source_.patch("default", "mine", patch, "suspend").ok());
  EXPECT_EQ(looks, 3);
  EXPECT_TRUE(view().suspended);
  EXPECT_EQ(view().wanted, 2);
}

TEST_F(RunSourceTest, EditGivesUpOnOneThatDoesNotEnd) {
  const UniqueFd other(::open(run_->path("edit.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
  const kube::Json patch = {{"spec", {{"runPolicy", {{"suspend", true}}}}}};
  EXPECT_TRUE(absl::IsDeadlineExceeded(source_.patch("default", "mine", patch, "suspend").status()));
  EXPECT_FALSE(view().suspended);
}

TEST_F(RunSourceTest, EditsOfTwoCommandsAtOnceAreBothMade) {
  for (int round = 0; round < 20; ++round) {
    const bool suspend = round % 2 == 0;
    const int workers = 1 + round % 3;
    const auto edit = [&](const kube::Json& spec) {
      RunSource source(store_, clock_, out_);
      EXPECT_TRUE(source.patch("default", "mine", {{"spec", spec}}, "edit").ok());
    };
    std::jthread other([&] { edit({{"runPolicy", {{"suspend", suspend}}}}); });
    edit({{"replicaSpecs", {{"worker", {{"replicas", workers}}}}}});
    other.join();
    EXPECT_EQ(view().suspended, suspend);
    EXPECT_EQ(view().wanted, workers);
  }
}

TEST_F(RunSourceTest, AnEditIsDoneWhenTheOwnerHasLookedAtIt) {
  std::ostringstream out, err;
  Call call = call_to(out, err);
  int looks = 0;
  on_pause_ = [&] {
    if (++looks >= 3) write("Suspended", "");
  };
  EXPECT_TRUE(suspend_jobs(call, {"mine"}, true).ok()) << err.str();
  EXPECT_EQ(looks, 4);  // the first status in which nobody is left may lack what the last one saved
  EXPECT_EQ(out.str(), "mine suspended\n");
  EXPECT_EQ(err.str(), "");
  on_pause_ = [&] { write("Succeeded", ""); };
  EXPECT_EQ(suspend_jobs(call, {"mine"}, false).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(RunSourceTest, SuspensionWaitsUntilItsMembersHaveLeft) {
  std::ostringstream out, err;
  Call call = call_to(out, err);
  RunState state = store_.get("mine").value();
  state.phase = "Suspended";
  state.status.replica_statuses[0].active = 1;
  int looks = 0;
  on_pause_ = [&] {
    if (++looks == 100) state.status.replica_statuses[0].active = 0;
    EXPECT_TRUE(run_->write_state(state, false).ok());
  };
  EXPECT_TRUE(suspend_jobs(call, {"mine"}, true).ok()) << err.str();
  EXPECT_EQ(looks, 101);
  EXPECT_NE(err.str(), "") << "it says that it waits";
}

TEST_F(RunSourceTest, SuspensionWhoseMembersStayFails) {
  std::ostringstream out, err;
  Call call = call_to(out, err);
  on_pause_ = [&, acted = false]() mutable {
    if (!std::exchange(acted, true)) write("Running", "");
  };
  EXPECT_TRUE(absl::IsDeadlineExceeded(suspend_jobs(call, {"mine"}, true)));
  EXPECT_EQ(out.str(), "");
}

TEST_F(RunSourceTest, SuspensionThatLosesStepsFailsWhereTheyCouldNotBeSaved) {
  for (const bool failed : {false, true}) {
    std::ostringstream out, err;
    Call call = call_to(out, err);
    RunState state = store_.get("mine").value();
    state.phase = "Suspended";
    state.message = "suspended at step 9, 4 steps behind";
    state.status.progress.step = 9;
    state.status.last_checkpoint = "checkpoints/step-000000005";
    state.status.conditions = {{.type = api::kCheckpointFailed, .status = failed}};
    on_pause_ = [&] { EXPECT_TRUE(run_->write_state(state, false).ok()); };
    ASSERT_TRUE(edit_run(store_, "mine", {.suspend = false}, "resume").ok());
    const absl::Status status = suspend_jobs(call, {"mine"}, true);
    EXPECT_EQ(status.code(), failed ? absl::StatusCode::kDataLoss : absl::StatusCode::kOk);
    EXPECT_EQ(out.str(), "mine suspended\n");
    EXPECT_NE((failed ? std::string(status.message()) : err.str()).find(state.message), std::string::npos);
  }
}

TEST_F(RunSourceTest, AnEditThatAStoppedOwnerDoesNotSeeFails) {
  const StoppedChild owner;
  RunState state = store_.get("mine").value();
  state.owner_pid = owner.pid();
  ASSERT_TRUE(run_->write_state(state, false).ok());
  for (int i = 0; i < 2; ++i) {  // the second time nothing is to be edited, and it is not done either
    std::ostringstream out, err;
    Call call = call_to(out, err);
    EXPECT_EQ(suspend_jobs(call, {"mine"}, true).code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(out.str(), "");
    EXPECT_NE(err.str().find(str_cat("waiting for process ", owner.pid())), std::string::npos) << err.str();
  }
}

TEST_F(RunSourceTest, AnEndedRunIsAdvisedToGoOnWhereItCan) {
  RunState ended = store_.get("mine").value();
  ended.job_file = "job.yaml";
  ended.checkpoint = "checkpoints/step-000000007";
  ended.phase = "Stopped";
  const RunStore elsewhere(folder_.path(), "my state");
  const std::string command = "`paceline run job.yaml --resume mine --state-dir 'my state'`";
  EXPECT_NE(goes_on(ended, "scale", elsewhere.where()).message().find(command), std::string::npos);
  ended.phase = "Succeeded";
  EXPECT_EQ(goes_on(ended, "scale", elsewhere.where()).message().find('`'), std::string::npos);
  ended.phase = "Failed";
  ended.checkpoint.clear();
  EXPECT_EQ(goes_on(ended, "scale", elsewhere.where()).message().find('`'), std::string::npos);
  const RunSource source(elsewhere, clock_, out_, pause_);
  EXPECT_EQ(source.where("default"), " --state-dir 'my state'");
}

TEST_F(RunSourceTest, EventsAreOfItsFolder) {
  EXPECT_TRUE(source_.events("default", "mine")->events.empty());
  ASSERT_TRUE(write_file_atomically(run_->path("events.jsonl"),
                                    R"({"time":"2026-01-01T00:00:00Z","type":"Warning","reason":"Killed")"
                                    R"(,"message":"m"})"
                                    "\n{torn")
                  .ok());
  const auto events = source_.events("default", "mine")->events;
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].warning);
  EXPECT_TRUE(events[0].last);
  EXPECT_EQ(events[0].reason, "Killed");
}

TEST_F(RunSourceTest, NewestEventsOfALongFileAreRead) {
  constexpr std::size_t kBytes = 1 << 10;
  constexpr std::size_t kLines = (17 << 20) / kBytes;
  {
    std::ofstream file(run_->path("events.jsonl"));
    for (std::size_t i = 0; i < kLines; ++i) {
      const std::string line = str_cat(R"({"reason":"Event)", i, R"(","message":")");
      file << line << std::string(kBytes - line.size() - 3, 'm') << "\"}\n";
    }
  }
  const auto events = source_.events("default", "mine");
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->events.size(), (16u << 20) / kBytes);
  EXPECT_EQ(events->events.front().reason, str_cat("Event", (1 << 20) / kBytes));
  EXPECT_EQ(events->events.back().reason, str_cat("Event", kLines - 1));
}

TEST_F(RunSourceTest, LogsAreOfMembersAndAttemptsAsOnACluster) {
  logs({.name = "mine"}, absl::StatusCode::kNotFound);
  log("digits-worker-0-0", "failed\n");
  log("digits-worker-0-1", "a\nb\n");
  log("digits-worker-1-1", "c\n");
  log("digits-chief-0-1", "d\n");
  const std::string workers = "worker-0 | a\nworker-0 | b\nworker-1 | c\n";
  EXPECT_EQ(logs({.name = "mine"}), "chief-0 | d\n" + workers);
  EXPECT_EQ(logs({.name = "mine", .member = "worker"}), workers);
  EXPECT_EQ(logs({.name = "mine", .member = "worker/0"}), "a\nb\n");
  EXPECT_EQ(logs({.name = "mine", .member = "worker-0", .log = {.tail = 1}}), "b\n");
  EXPECT_EQ(logs({.name = "mine", .member = "worker-0", .previous = true}), "failed\n");
  EXPECT_EQ(logs({.name = "mine", .member = "digits-worker-0-0"}), "failed\n");
  logs({.name = "mine", .member = "worker/7"}, absl::StatusCode::kNotFound);
  logs({.name = "mine", .member = "boss"}, absl::StatusCode::kInvalidArgument);
}

TEST_F(RunSourceTest, LogsOfAnEarlierSessionAreBeforeThoseOfThisOne) {
  log("digits-worker-0-1", "present\n");
  log("digits-worker-0-7", "of an earlier session\n");
  EXPECT_EQ(logs({.name = "mine", .member = "worker-0"}), "present\n");
  EXPECT_EQ(logs({.name = "mine", .member = "worker-0", .previous = true}), "of an earlier session\n");
  EXPECT_EQ(logs({.name = "mine", .member = "digits-worker-0-7"}), "of an earlier session\n");
}

TEST_F(RunSourceTest, FollowingGoesOnWithTheNextAttemptAndEndsWithTheRun) {
  log("digits-worker-0-0", "first\n");
  const std::thread::id command = std::this_thread::get_id();
  std::atomic<int> looks = 0, reader_pauses = 0;
  on_pause_ = [&] {
    if (std::this_thread::get_id() != command) {
      ++reader_pauses;
      return std::this_thread::yield();
    }
    while (reader_pauses == 0) std::this_thread::yield();  // the first log has been printed
    ++looks;
    if (looks == 1) log("digits-worker-0-1", "second\n");
    if (looks == 2) write("Failed", "MemberKilled");
  };
  EXPECT_EQ(logs({.name = "mine", .member = "worker/0", .log = {.follow = true}}), "first\nsecond\n");
}

TEST_F(RunSourceTest, FailedRunIsKeptForItsCheckpoint) {
  checkpoint::CheckpointStore checkpoints(run_->path("checkpoints"), 1);
  ASSERT_TRUE(checkpoints.save({.progress = {.step = 7}}).ok());
  write("Failed", "MemberFailed");
  run_.reset();
  EXPECT_NE(delete_finished().find("checkpoints: mine; `paceline delete NAME`"), std::string::npos);
  ASSERT_TRUE(store_.get("mine").ok());

  std::filesystem::remove_all(store_.get("mine")->folder + "/checkpoints");
  EXPECT_EQ(delete_finished(), "mine deleted\n");
  EXPECT_TRUE(absl::IsNotFound(store_.get("mine").status()));
}

TEST_F(RunSourceTest, RunWithADamagedStatusIsKept) {
  ASSERT_TRUE(write_file_atomically(run_->path("status.json"), "{torn").ok());
  run_.reset();
  EXPECT_TRUE(has_ended(view()));
  EXPECT_NE(delete_finished().find("damaged status.json"), std::string::npos);
  EXPECT_TRUE(store_.get("mine").ok());
}

TEST_F(RunSourceTest, RunThatHasSucceededIsNotKeptForItsCheckpoint) {
  checkpoint::CheckpointStore checkpoints(run_->path("checkpoints"), 1);
  ASSERT_TRUE(checkpoints.save({.progress = {.step = 7}}).ok());
  write("Succeeded", "");
  run_.reset();
  EXPECT_EQ(delete_finished(), "mine deleted\n");
}

TEST_F(RunSourceTest, CheckpointInAPlaceOfItsOwnCounts) {
  RunState run = store_.get("mine").value();
  run.checkpoint = folder_.path() + "/elsewhere/step-000000007";
  EXPECT_FALSE(source_.has_checkpoint(run));
  std::filesystem::create_directories(run.checkpoint);
  EXPECT_TRUE(source_.has_checkpoint(run));
}

TEST_F(RunSourceTest, RunOfAStoppedOwnerIsKeptAndItsOwnerNotTold) {
  const StoppedChild owner;
  RunState state = store_.get("mine").value();
  state.owner_pid = owner.pid();
  ASSERT_TRUE(run_->write_state(state, false).ok());
  const absl::Status removed = source_.remove("", "mine", "", "").status();
  EXPECT_EQ(removed.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_NE(removed.message().find(str_cat("`kill -CONT ", owner.pid(), "`")), std::string::npos) << removed;
  EXPECT_TRUE(is_alive(owner.pid()));
  EXPECT_TRUE(store_.get("mine").ok());
}

TEST_F(RunSourceTest, DeleteWaitsForTheCommandThatHoldsTheRun) {
  write("Stopped", "Stopped");
  int looks = 0;
  on_pause_ = [&] {
    if (++looks == 3) run_.reset();
  };
  EXPECT_TRUE(source_.remove("", "mine", "", "").ok());
  EXPECT_EQ(looks, 3);
  EXPECT_TRUE(absl::IsNotFound(store_.get("mine").status()));
}

TEST_F(RunSourceTest, DeleteIsDoneWhereAnotherOneWasFaster) {
  write("Stopped", "Stopped");
  on_pause_ = [&] {
    run_.reset();
    EXPECT_TRUE(store_.remove("mine").ok());
  };
  EXPECT_TRUE(source_.remove("", "mine", "", "").ok());
}

TEST_F(RunSourceTest, DeleteGivesUpOnARunThatStaysHeld) {
  write("Stopped", "Stopped");
  EXPECT_TRUE(absl::IsFailedPrecondition(source_.remove("", "mine", "", "").status()));
  EXPECT_TRUE(store_.get("mine").ok());
}

TEST_F(RunSourceTest, UnknownRunsAreNotFound) {
  for (const auto& status :
       {source_.job("", "other").status(), source_.choose("", "other").status(),
        source_.events("", "other").status(), source_.remove("", "other", "", "").status()})
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
}

}  // namespace
}  // namespace paceline::cli
