#include "cli/run/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/no_descriptors.h"
#include "tests/support/small_job.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

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

}  // namespace
}  // namespace paceline::cli
