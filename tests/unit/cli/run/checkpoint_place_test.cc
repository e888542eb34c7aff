#include "cli/run/checkpoint_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/state/resume_command.h"
#include "controller/api/print.h"
#include "controller/api/training_spec.h"
#include "runtime/checkpoint/spec_hash.h"
#include "tests/support/small_job.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A run that has saved step 10 in "a", and its job, which now names "b".
class CheckpointPlace : public ::testing::Test {
 protected:
  CheckpointPlace() {
    run_.name = "mine";
    run_.folder = folder_.path() + "/mine";
    std::filesystem::create_directories(run_.folder);
    save("a", 10);
    run_.checkpoint = place("a") + "/step-000000010";
    job_ = naming("b");
  }

  std::string place(const std::string& name) const { return folder_.path() + "/" + name; }
  JobFile naming(const std::string& name) const {
    return {
        .job = small_job("digits", "  replicaSpecs: {chief: {}}\n  checkpoint: {location: " + name + "}\n"),
        .text = "",
        .base_folder = folder_.path(),
        .path = folder_.path() + "/job.yaml"};
  }
  void save(const std::string& name, std::int64_t step, std::uint64_t seed = 1) const {
    checkpoint::CheckpointStore store(place(name), 9);
    checkpoint::Snapshot snapshot;
    snapshot.progress.step = step;
    snapshot.progress.seed = seed;
    snapshot.progress.spec_hash = checkpoint::spec_hash(*api::make_training_spec(naming("b").job, {}));
    EXPECT_TRUE(store.save(snapshot).ok());
  }
  void copy(const std::string& from, const std::string& to) const {
    std::filesystem::copy(place(from), place(to), std::filesystem::copy_options::recursive);
  }
  absl::Status check() const {
    const auto newest = newest_checkpoint(job_, run_.folder);
    EXPECT_TRUE(newest.ok()) << newest.status();
    return check_place(run_, job_, *newest, runs_);
  }
  // It names the job's place, and `fact`: a path, a run or a command.
  void expect_refused(const std::string& fact = "") const {
    const absl::Status status = check();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr(place("b")), HasSubstr(fact)));
  }

  const TemporaryFolder folder_;
  RunState run_;
  JobFile job_;
  std::vector<RunState> runs_;
};

TEST_F(CheckpointPlace, SamePlaceByAnotherNameIsNoMove) {
  std::filesystem::create_symlink("a", place("b"));
  save("a", 20);  // that the run has not noted
  EXPECT_EQ(check(), absl::OkStatus());
}

TEST_F(CheckpointPlace, EmptyPlaceIsRefusedUntilTheCheckpointsAreCopied) {
  expect_refused("cp -r " + place("a") + "/. " + place("b"));
  copy("a", "b");
  EXPECT_EQ(check(), absl::OkStatus());
}

TEST_F(CheckpointPlace, PlaceOfAnotherTrainingIsRefusedAlsoAtTheSameStep) {
  save("b", 10, 2);
  expect_refused();
  runs_ = {run_, run_};
  runs_[1].name = "other";
  runs_[1].checkpoint = place("b") + "/step-000000010";
  expect_refused("\"other\"");
}

TEST_F(CheckpointPlace, OlderCopyIsRefused) {
  copy("a", "b");
  save("a", 20);
  expect_refused(place("a"));
}

TEST_F(CheckpointPlace, MovedCheckpointsAreKnownByTheNotedStep) {
  std::filesystem::rename(place("a"), place("b"));
  EXPECT_EQ(check(), absl::OkStatus());
  save("b", 20);
  expect_refused();
  run_.checkpoint = place("a") + "/step-000000020";
  EXPECT_EQ(check(), absl::OkStatus());
  runs_ = {run_};
  runs_[0].name = "other";
  runs_[0].checkpoint = place("b") + "/step-000000020";
  expect_refused("\"other\"");
}

TEST_F(CheckpointPlace, RunsOwnFolderMayHaveMoreThanItsOwnerHadNoted) {
  std::filesystem::rename(place("a"), run_.folder + "/checkpoints");
  save("mine/checkpoints", 20);
  job_ = naming("mine/checkpoints");
  EXPECT_EQ(check(), absl::OkStatus());
}

TEST_F(CheckpointPlace, RunWithoutACheckpointTakesNoOthers) {
  std::filesystem::remove_all(place("a"));
  run_.checkpoint.clear();
  run_.job_file = job_.path;
  std::ofstream(run_.folder + "/job.yaml") << api::print_yaml(naming("a").job);
  EXPECT_EQ(check(), absl::OkStatus());
  save("b", 10);
  expect_refused("has no checkpoint");
}

TEST_F(CheckpointPlace, NewRunIsRefusedAmongCheckpointsAndToldWhoMadeThem) {
  EXPECT_EQ(check_is_empty(place("b"), job_, {}, ""), absl::OkStatus());
  absl::Status status = check_is_empty(place("a"), job_, {}, "");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("remove them"));
  run_.job = "digits";
  status = check_is_empty(place("a"), job_, {run_}, " --state-dir s");
  EXPECT_THAT(status.message(), HasSubstr(resume_command("s", job_.path, "mine")));
  run_.job = "another";
  run_.job_file = "/another.yaml";
  status = check_is_empty(place("a"), job_, {run_}, "");
  EXPECT_THAT(status.message(), HasSubstr(resume_command("", "/another.yaml", "mine")));
}

TEST_F(CheckpointPlace, NewRunIsNotSentToARunThatCanNotGoOnWithItsJob) {
  run_.job = "digits";
  job_.job.spec.training->model.hidden = {7};
  const absl::Status status = check_is_empty(place("a"), job_, {run_}, "");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("checkpoint.location"), Not(HasSubstr(resume_command("", job_.path, "mine")))));
}

TEST_F(CheckpointPlace, OnlyWhatLiesOutsideOfTheRunIsLeft) {
  save("a", 20);
  EXPECT_THAT(left_checkpoints_text(run_, {run_}), AllOf(HasSubstr(" 2 checkpoints"), HasSubstr(place("a"))));
  save("mine/checkpoints", 20);
  run_.checkpoint = run_.folder + "/checkpoints/step-000000020";
  EXPECT_EQ(left_checkpoints_text(run_, {}), "");
  run_.checkpoint = place("b") + "/step-000000020";
  EXPECT_EQ(left_checkpoints_text(run_, {}), "");
}

TEST_F(CheckpointPlace, CheckpointsOfADeletedRunAreOrphans) {
  const JobFile job = naming("a");
  EXPECT_TRUE(holds_orphans(job, {}));
  EXPECT_FALSE(holds_orphans(job, {run_})) << "it has saved there";
  run_.checkpoint.clear();
  EXPECT_TRUE(holds_orphans(job, {run_}));
  run_.job = "digits";
  EXPECT_FALSE(holds_orphans(job, {run_})) << "a resume goes on with that run";
  EXPECT_FALSE(holds_orphans(naming("b"), {})) << "there is none";
  JobFile without = job;
  without.job.spec.checkpoint.location.clear();
  EXPECT_FALSE(holds_orphans(without, {}));
}

TEST_F(CheckpointPlace, CheckpointsAreLeftByTheRunThatSavedThereLast) {
  run_.created = "2026-01-01T00:00:00.000Z";
  RunState later = run_;
  later.name = "later";
  later.created = "2026-01-02T00:00:00.000Z";
  const std::vector<RunState> runs = {later, run_};
  EXPECT_THAT(left_checkpoints_text(run_, runs), HasSubstr("\"later\""));
  EXPECT_THAT(left_checkpoints_text(later, runs), AllOf(HasSubstr("\"later\""), Not(HasSubstr("\"mine\""))));
  later.checkpoint.clear();  // it has saved nothing
  later.job_file = naming("a").path;
  later.folder = folder_.path() + "/later";
  std::filesystem::create_directories(later.folder);
  std::ofstream(later.folder + "/job.yaml") << api::print_yaml(naming("a").job);
  EXPECT_THAT(left_checkpoints_text(later, {later, run_}), HasSubstr("\"mine\""));
  EXPECT_THAT(left_checkpoints_text(run_, {later, run_}),
              AllOf(HasSubstr("\"mine\""), Not(HasSubstr("\"later\""))));
}

TEST_F(CheckpointPlace, RunThatSavedThereIsFound) {
  EXPECT_EQ(run_that_saved_in({}, place("a")), nullptr);
  const std::vector<RunState> runs = {RunState{}, run_};
  EXPECT_EQ(run_that_saved_in(runs, place("a") + "/"), &runs[1]);
  EXPECT_EQ(run_that_saved_in(runs, place("b")), nullptr);
}

}  // namespace
}  // namespace paceline::cli
