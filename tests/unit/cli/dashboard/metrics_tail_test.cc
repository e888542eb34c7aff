#include "cli/dashboard/metrics_tail.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

std::string line(int step) {
  return str_cat(R"({"type":"step","step":)", step, R"(,"loss":1,"learningRate":1,"timeSeconds":1})", "\n");
}

class MetricsTailTest : public ::testing::Test {
 protected:
  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  std::size_t steps() const { return tail_.series().points(100'000).steps.size(); }
  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/metrics.jsonl";
  MetricsTail tail_{path_};
};

constexpr std::size_t kAll = 64 << 20;

TEST_F(MetricsTailTest, NewLinesAreAdded) {
  EXPECT_EQ(tail_.read(kAll).value(), true) << "there is no file yet";
  append(line(1) + line(2));
  EXPECT_EQ(tail_.read(kAll).value(), true);
  EXPECT_EQ(steps(), 2U);
  append(line(3) + line(4).substr(0, 20));
  EXPECT_EQ(tail_.read(kAll).value(), true);
  EXPECT_EQ(steps(), 3U);
  append(line(4).substr(20));
  EXPECT_EQ(tail_.read(kAll).value(), true);
  EXPECT_EQ(steps(), 4U);
  const std::uint64_t version = tail_.series().version();
  EXPECT_EQ(tail_.read(kAll).value(), true);
  EXPECT_EQ(tail_.series().version(), version) << "nothing is read twice";
}

TEST_F(MetricsTailTest, LongFilesAreReadInParts) {
  std::string text;
  for (int step = 0; step < 20'000; ++step) text += line(step);
  append(text);
  EXPECT_EQ(tail_.read(1).value(), false);
  EXPECT_LT(tail_.series().newest(), 19'999);
  while (!tail_.read(1).value()) {
  }
  EXPECT_EQ(tail_.series().newest(), 19'999);
}

TEST_F(MetricsTailTest, ReplacedFilesAreReadAnew) {
  append(line(1) + line(2) + line(3));
  EXPECT_EQ(tail_.read(kAll).value(), true);
  std::ofstream(path_, std::ios::trunc) << line(1);
  EXPECT_EQ(tail_.read(kAll).value(), true);
  EXPECT_EQ(tail_.series().newest(), 1);
  std::ofstream(path_ + ".new") << line(7) + line(8);
  std::filesystem::rename(path_ + ".new", path_);
  EXPECT_EQ(tail_.read(kAll).value(), true);
  EXPECT_EQ(tail_.series().newest(), 8);
  EXPECT_EQ(steps(), 2U);
}

TEST_F(MetricsTailTest, FileThatIsNoneIsAnError) {
  append(line(1));
  EXPECT_EQ(tail_.read(kAll).value(), true);
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(tail_.read(kAll).ok());
  EXPECT_EQ(tail_.series().newest(), 1) << "what was read stays";
}

TEST_F(MetricsTailTest, LinesWithoutEndAreGivenUp) {
  append(std::string(3 << 20, 'x'));
  EXPECT_EQ(tail_.read(kAll).value(), true);
  append("\n" + line(5));
  EXPECT_EQ(tail_.read(kAll).value(), true);
  EXPECT_EQ(tail_.series().newest(), 5);
}

}  // namespace
}  // namespace paceline::cli
