#include "cli/dashboard/run_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

using kube::Json;
using ::testing::ElementsAre;

std::string step_line(int step) {
  return str_cat(R"({"type":"step","step":)", step, R"(,"loss":1,"timeSeconds":1})", "\n");
}

Json run_of(const std::string& uid) {
  return {{"metadata", {{"name", "digits"}, {"uid", uid}}}};
}

class RunPlaceSeriesTest : public ::testing::Test {
 protected:
  RunPlaceSeriesTest() { std::filesystem::create_directories(path_.parent_path()); }
  std::vector<Step> steps(const std::string& uid) {
    std::vector<Step> steps;
    const auto use = [&](const dashboard::JobSeries& series) { steps = series.points(100).steps; };
    EXPECT_TRUE(place_.use_series(run_of(uid), use).ok());
    return steps;
  }
  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() + "/runs/digits/metrics.jsonl";
  FakeClock clock_;
  RunPlace place_{RunStore(folder_.path()), clock_};
};

TEST_F(RunPlaceSeriesTest, SeriesGoOnWithTheirFile) {
  EXPECT_THAT(steps("first"), ElementsAre());
  std::ofstream(path_) << step_line(1);
  EXPECT_THAT(steps("first"), ElementsAre(1));
  std::ofstream(path_, std::ios::app) << step_line(2);
  EXPECT_THAT(steps("first"), ElementsAre(1, 2));
}

TEST_F(RunPlaceSeriesTest, ARunHasNothingOfTheDeletedOneOfItsName) {
  std::ofstream(path_) << step_line(1);
  EXPECT_THAT(steps("first"), ElementsAre(1));
  std::ofstream(path_) << step_line(7) << step_line(8);  // of the same inode, and larger
  EXPECT_THAT(steps("second"), ElementsAre(7, 8));
}

}  // namespace
}  // namespace paceline::cli
