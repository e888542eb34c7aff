#include "base/data_path.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

TEST(DataPath, FolderIsRefused) {
  const TemporaryFolder folder;
  EXPECT_TRUE(absl::IsInvalidArgument(check_no_folder(folder.path())));
  EXPECT_TRUE(check_no_folder(folder.path() + "/missing").ok());
  std::ofstream(folder.path() + "/file") << "x";
  EXPECT_TRUE(check_no_folder(folder.path() + "/file").ok());
}

}  // namespace
}  // namespace paceline
