#include "runtime/trainer/progress_file_store.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace paceline::trainer {
namespace {

TEST(ProgressFileStore, TheyTellOfEachPieceAndWriteWhatTheyAreGiven) {
  const TemporaryFolder folder;
  StopRequest stop;
  ProgressFileStore files(nullptr, stop);
  std::vector<std::byte> large(2 * ProgressFileStore::kPieceBytes + 1);
  for (std::size_t k = 0; k < large.size(); ++k) large[k] = static_cast<std::byte>(k * 7 >> 3);
  const std::vector<std::byte> small(5, std::byte{9});
  const std::vector<std::span<const std::byte>> pieces = {small, large};
  const std::string path = folder.path() + "/state";
  ASSERT_TRUE(files.write_file(path, pieces).ok());
  EXPECT_EQ(stop.moves(), 1u + 3u + 1u) << "one piece, three, and the sync";
  const auto read = files.read_file(path, 1u << 30);
  ASSERT_TRUE(read.ok()) << read.status();
  std::vector<std::byte> expected = small;
  expected.insert(expected.end(), large.begin(), large.end());
  EXPECT_TRUE(*read == expected);
}

}  // namespace
}  // namespace paceline::trainer
