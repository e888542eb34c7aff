#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

TEST(FileTest, WritesAndReadsBack) {
  testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/a.txt";
  ASSERT_TRUE(write_file_atomically(path, "one").ok());
  ASSERT_TRUE(write_file_atomically(path, "two").ok());
  EXPECT_EQ(read_file(path, 10).value(), "two");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    files += entry.exists() ? 1 : 0;
  EXPECT_EQ(files, 1) << "no temporary file is left";
}

TEST(FileTest, ErrorsAreTold) {
  testing::TemporaryFolder folder;
  EXPECT_EQ(read_file(folder.path() + "/none", 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(read_file(folder.path(), 10).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(write_file_atomically(folder.path() + "/none/a", "x").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(write_file_atomically(folder.path() + "/a", "12345").ok());
  EXPECT_EQ(read_file(folder.path() + "/a", 4).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(read_file(folder.path() + "/a", 5).value(), "12345");
}

TEST(FileTest, ARefusedRenameLeavesNoRubbish) {
  testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/taken";
  std::filesystem::create_directory(path);  // a file can't be renamed over a folder
  EXPECT_FALSE(write_file_atomically(path, "x").ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename(), "taken");
  }
}

}  // namespace
}  // namespace paceline
