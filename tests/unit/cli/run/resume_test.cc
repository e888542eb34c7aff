#include "cli/run/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "controller/api/print.h"
#include "tests/support/no_descriptors.h"
#include "tests/support/small_job.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

void save_checkpoint(const std::string& folder, std::int64_t step) {
  checkpoint::CheckpointStore store(folder, 1);
  EXPECT_TRUE(store.save({.progress = {.step = step}}).ok());
}

RunState run_of(const std::string& name, const std::string& phase, const std::string& root) {
  RunState state;
  state.name = name;
  state.phase = phase;
  state.folder = root + "/" + name;
  std::filesystem::create_directories(state.folder);
  return state;
}

// A checkpoint that can't be looked at is not none: a run that goes on would begin anew.
TEST(NewestCheckpoint, WhatCanNotBeReadIsNotTakenForNone) {
  const TemporaryFolder folder;
  const JobFile job{
      .job = small_job("digits", "  replicaSpecs: {chief: {}}\n  checkpoint: {everySteps: 5}\n"),
      .base_folder = folder.path(),
      .path = folder.path() + "/job.yaml"};
  ASSERT_NE(checkpoint_folder(job, folder.path()), "");
  const auto none = newest_checkpoint(job, folder.path());
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_FALSE(none->has_value());

  std::filesystem::create_directories(checkpoint_folder(job, folder.path()) + "/step-000000007");
  {
    const NoDescriptors none_left;
    const auto unread = newest_checkpoint(job, folder.path());
    EXPECT_TRUE(absl::IsResourceExhausted(unread.status())) << unread.status();
  }
  const auto damaged = newest_checkpoint(job, folder.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(damaged.status())) << damaged.status();
}

TEST(NewestCheckpoint, WhatIsInTheFoldersPlaceIsNotTakenForNone) {
  const TemporaryFolder folder;
  const JobFile job{
      .job = small_job("digits", "  replicaSpecs: {chief: {}}\n  checkpoint: {everySteps: 5}\n"),
      .base_folder = folder.path(),
      .path = folder.path() + "/job.yaml"};
  const std::string place = checkpoint_folder(job, folder.path());
  for (const char* target : {"", "nowhere", "checkpoints"}) {  // a file, and links
    std::filesystem::remove(place);
    if (*target == '\0') {
      std::ofstream(place) << "x";
    } else {
      std::filesystem::create_symlink(target, place);
    }
    const absl::Status found = newest_checkpoint(job, folder.path()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(found)) << target << " " << found;
    EXPECT_NE(found.message().find("remove what is in its place to begin anew"), std::string::npos) << found;
  }
}

TEST(CheckReadable, CheckpointsThatAreAllDamagedAreRefused) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), 5);
  FoundCheckpoint newest{.path = folder.path() + "/step-000000005", .bytes = 100};
  EXPECT_EQ(check_readable(newest), absl::OkStatus());
  std::ofstream(newest.path + "/state.safetensors") << "torn";
  const absl::Status damaged = check_readable(newest);
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_THAT(damaged.message(), testing::HasSubstr("step-000000005: state.safetensors"));
  newest.bytes = kMostRead + 1;
  EXPECT_EQ(check_readable(newest), absl::OkStatus());
}

TEST(CheckResume, CheckpointsThatAreGoneAreNotNone) {
  const TemporaryFolder folder;
  const JobFile job{.job = small_job("digits", "  replicaSpecs: {chief: {}}\n"),
                    .base_folder = folder.path(),
                    .path = folder.path() + "/job.yaml"};
  RunState run = run_of("mine", "Stopped", folder.path());
  EXPECT_EQ(check_resume(run, job, std::nullopt, ""), absl::OkStatus());
  run.checkpoint = "/place/step-000005402";
  const absl::Status gone = check_resume(run, job, std::nullopt, " --state-dir s");
  EXPECT_TRUE(absl::IsFailedPrecondition(gone)) << gone;
  EXPECT_THAT(gone.message(),
              testing::AllOf(testing::HasSubstr("5402"), testing::HasSubstr("job.yaml --state-dir s`")));
}

class RunToResumeTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const JobFile job_{
      .job = small_job("digits", "  replicaSpecs: {chief: {}}\n  checkpoint: {everySteps: 5}\n"),
      .base_folder = folder_.path(),
      .path = folder_.path() + "/job.yaml"};
  std::vector<RunState> runs_ = {run_of("c", "Failed", folder_.path()), run_of("b", "Failed", folder_.path()),
                                 run_of("a", "Stopped", folder_.path())};
};

TEST_F(RunToResumeTest, NewestRunWithACheckpointIsTaken) {
  save_checkpoint(checkpoint_folder(job_, runs_[2].folder), 5);
  RunToResume chosen = run_to_resume(runs_, job_);
  EXPECT_EQ(chosen.name, "a");
  EXPECT_EQ(chosen.passed_over, "runs c, b have no checkpoint and are passed over");

  save_checkpoint(checkpoint_folder(job_, runs_[1].folder), 5);
  chosen = run_to_resume(runs_, job_);
  EXPECT_EQ(chosen.name, "b");
  EXPECT_EQ(chosen.passed_over, "run c has no checkpoint and is passed over");
}

TEST_F(RunToResumeTest, NewPlaceOfTheJobCountsForTheRunThatHasNotedItsStep) {
  for (const RunState& run : runs_) std::ofstream(run.folder + "/job.yaml") << api::print_yaml(job_.job);
  JobFile moved = job_;
  moved.job.spec.checkpoint.location = "moved";
  save_checkpoint(folder_.path() + "/moved", 5);
  EXPECT_EQ(run_to_resume(runs_, moved).name, "c");
  runs_[2].checkpoint = runs_[2].folder + "/checkpoints/step-000000005";
  EXPECT_EQ(run_to_resume(runs_, moved).name, "a");
}

TEST_F(RunToResumeTest, NewestRunIsTakenWhereNoneHasACheckpoint) {
  const RunToResume chosen = run_to_resume(runs_, job_);
  EXPECT_EQ(chosen.name, "c");
  EXPECT_EQ(chosen.passed_over, "");
}

TEST_F(RunToResumeTest, RunWhoseCheckpointsAreGoneIsNotPassedOver) {
  save_checkpoint(checkpoint_folder(job_, runs_[1].folder), 5);
  runs_[0].checkpoint = runs_[0].folder + "/checkpoints/step-000000007";
  EXPECT_EQ(run_to_resume(runs_, job_).name, "c");
}

TEST_F(RunToResumeTest, RunThatGoesOnOrIsDamagedIsNotPassedOver) {
  save_checkpoint(checkpoint_folder(job_, runs_[2].folder), 5);
  runs_[0].phase = "Running";
  EXPECT_EQ(run_to_resume(runs_, job_).name, "c");
  runs_[0].phase = "Failed";
  std::filesystem::create_directories(checkpoint_folder(job_, runs_[0].folder) + "/step-000000007");
  EXPECT_EQ(run_to_resume(runs_, job_).name, "c");
}

}  // namespace
}  // namespace paceline::cli
