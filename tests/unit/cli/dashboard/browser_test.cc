#include "cli/dashboard/browser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/regular_file.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

TEST(LeadingFileTest, OnlyItsUserReadsIt) {
  TemporaryFolder folder;
  std::string path;
  {
    const auto file = LeadingFile::write(folder.path() + "/state", "http://127.0.0.1:1/#token=abc");
    ASSERT_TRUE(file.ok()) << file.status();
    path = (*file)->path();
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
    EXPECT_THAT(read_regular_file(path, 10'000).value(),
                ::testing::HasSubstr("url=http://127.0.0.1:1/#token=abc\""));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(LeadingFileTest, FoldersThatCannotBeMadeAreAnError) {
  EXPECT_FALSE(LeadingFile::write("/proc/no/such/folder", "x").ok());
}

}  // namespace
}  // namespace paceline::cli
