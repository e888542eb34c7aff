#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/unique_fd.h"
#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

TEST(FileTest, WritesAndReadsBack) {
  TemporaryFolder folder;
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
  TemporaryFolder folder;
  EXPECT_EQ(read_file(folder.path() + "/none", 10).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(read_file(folder.path(), 10).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(write_file_atomically(folder.path() + "/none/a", "x").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(write_file_atomically(folder.path() + "/a", "12345").ok());
  EXPECT_EQ(read_file(folder.path() + "/a", 4).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(read_file(folder.path() + "/a", 5).value(), "12345");
}

TEST(FileTest, NamedFileKeepsItsKind) {
  const TemporaryFolder folder;
  const std::string real = folder.path() + "/real", link = folder.path() + "/link",
                    pipe = folder.path() + "/pipe";
  ASSERT_TRUE(write_named_file(real, "first").ok());
  ASSERT_EQ(::symlink("real", link.c_str()), 0);
  ASSERT_TRUE(write_named_file(link, "by its link").ok());
  EXPECT_EQ(read_file(real, 100).value(), "by its link");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(write_named_file("/dev/null", "anything").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(absl::IsResourceExhausted(write_named_file("/dev/full", "anything")));
  EXPECT_TRUE(absl::IsInvalidArgument(write_named_file(folder.path(), "anything")));

  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(write_named_file(pipe, "nobody reads it").ok());
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(write_named_file(pipe, "abc").ok());
  char got[4] = {};
  EXPECT_EQ(::read(reader.get(), got, 3), 3);
  EXPECT_STREQ(got, "abc");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(FileTest, ARefusedRenameLeavesNoRubbish) {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/taken";
  std::filesystem::create_directory(path);  // a file can't be renamed over a folder
  EXPECT_FALSE(write_file_atomically(path, "x").ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename(), "taken");
  }
}

}  // namespace
}  // namespace paceline
