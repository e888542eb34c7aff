#include "cli/commands/run_source.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "cli/cluster/job_view.h"
#include "cli/state/suspension.h"
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
    state.status.replica_statuses = {{.role = Role::kWorker, .ready = 3}};
    EXPECT_TRUE(run_->write_state(state, false).ok());
  }
  JobView view() { return read_job(source_.job("default", "mine").value()); }

  testing::TemporaryFolder folder_;
  RunStore store_{folder_.path()};
  std::unique_ptr<OwnedRun> run_ = *store_.create_named("mine");
  bool written_ = write_file_atomically(run_->path("job.yaml"), kJob).ok();
  std::ostringstream out_;
  RunSource source_{store_, out_};
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
  EXPECT_EQ(running.run->step, 7);
  EXPECT_EQ(running.run->job, "digits");
  EXPECT_EQ(source_.list_jobs("")->objects.size(), 1u);
  write("Stopped", "Stopped");
  EXPECT_EQ(view().status.phase, api::Phase::kFailed);
  EXPECT_EQ(view().status.reason, "Stopped");
  EXPECT_EQ(view().run->phase, "Stopped");
}

TEST_F(RunSourceTest, SuspensionIsEditedForTheOwner) {
  SuspensionEdits edits(run_->folder());
  EXPECT_EQ(edits.look(), false);
  EXPECT_EQ(edits.look(), std::nullopt);
  for (const bool suspend : {true, false}) {
    const kube::Json patch = {{"spec", {{"runPolicy", {{"suspend", suspend}}}}}};
    ASSERT_TRUE(source_.patch("default", "mine", patch, "edit").ok());
    EXPECT_EQ(view().suspended, suspend);
    EXPECT_EQ(edits.look(), suspend);
  }
  EXPECT_EQ(set_suspended(store_, "mine", false).value_or(true), false) << "it says so already";
  write("Succeeded", "");
  EXPECT_TRUE(absl::IsFailedPrecondition(set_suspended(store_, "mine", true).status()));
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

TEST_F(RunSourceTest, UnknownRunsAreNotFound) {
  for (const auto& status : {source_.job("", "other").status(), source_.choose("", "other").status(),
                             source_.events("", "other").status(), source_.remove("", "other", "").status()})
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
}

}  // namespace
}  // namespace paceline::cli
