#include "cli/run/checkpoint_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CheckpointLock, OneRunAtATime) {
  const TemporaryFolder folder;
  const std::string place = folder.path() + "/a/checkpoints";
  {
    const auto first = lock_checkpoints(place, {});
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_TRUE(first->valid());
    const auto second = lock_checkpoints(place, {});
    ASSERT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(second.status().message()), HasSubstr(place));
    EXPECT_THAT(std::string(second.status().message()), HasSubstr("another checkpoint.location"));
    RunState other;
    other.name = "other";
    other.phase = "Running";
    other.owner_pid = 4711;
    other.checkpoint = place + "/step-000000005";
    const absl::Status named = lock_checkpoints(place, {other}).status();
    EXPECT_THAT(std::string(named.message()), AllOf(HasSubstr("\"other\""), HasSubstr("4711")));
    EXPECT_TRUE(lock_checkpoints(folder.path() + "/b", {}).ok());
  }
  EXPECT_TRUE(lock_checkpoints(place, {}).ok()) << "the first has ended";
  EXPECT_TRUE(std::filesystem::is_empty(place));
}

TEST(CheckpointLock, PlaceThatCanNotBeWrittenIsRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/file") << "x";
  for (const std::string& place :
       {folder.path() + "/file", folder.path() + "/file/below", std::string("/proc"),
        std::string("/proc/below")}) {  // nobody makes a file there
    const absl::Status refused = lock_checkpoints(place, {}).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << place << " " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(place + ":"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("spec.checkpoint.location"));
  }
}

}  // namespace
}  // namespace paceline::cli
