#include "controller/dashboard/series_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"

namespace paceline::dashboard {
namespace {

using ::testing::ElementsAre;
using ::testing::Le;
using ::testing::SizeIs;

JobSeries series_of(Step steps, int members) {
  JobSeries series;
  std::vector<std::string> view;
  for (int i = 0; i < members; ++i) view.push_back(str_cat("worker-", members - 1 - i));
  series.set_view(view);
  for (Step step = 1; step <= steps; ++step) {
    const auto number = static_cast<double>(step);
    series.add(StepPoint{.step = step, .loss = number, .learning_rate = 0.5, .seconds = number / 100});
    for (int i = 0; i < members; ++i)
      series.add(MemberPoint{.member = str_cat("worker-", i),
                             .step = step,
                             .ms = {0, static_cast<float>(i), 1, 0, 0, 0, static_cast<float>(i) + 1}});
    if (step % 10 == 0)
      series.add(EvaluationPoint{
          .step = step, .loss = number / 2, .accuracy = 0.5, .seconds = number / 100, .auc = std::nullopt});
  }
  return series;
}

TEST(SeriesRecordTest, AShortJobComesBackAsItWas) {
  const auto series = unpack_series(pack_series(series_of(200, 3)));
  ASSERT_TRUE(series.ok()) << series.status();
  EXPECT_EQ(series->newest(), 200);
  const JobSeries::Points points = series->points(1024);
  ASSERT_THAT(points.steps, SizeIs(200));
  EXPECT_EQ(points.width, 1);
  EXPECT_EQ(points.loss[41], 42);
  EXPECT_EQ(points.seconds[41], 0.42);
  EXPECT_TRUE(std::isnan(points.steps_per_second[0]));
  ASSERT_THAT(series->evaluations(), SizeIs(20));
  EXPECT_EQ(series->evaluations()[1].loss, 10);
  EXPECT_FALSE(series->evaluations()[1].auc);
  const JobSeries::HeatMap map = series->heat_map(0, 200, 256);
  EXPECT_THAT(map.members, ElementsAre("worker-2", "worker-1", "worker-0"));
  EXPECT_EQ(map.ranks, 3);
  EXPECT_EQ(map.ms[1][100], 2);
}

TEST(SeriesRecordTest, ALongJobIsCoarserAndBoundedAndGoesOn) {
  const std::string bytes = pack_series(series_of(20'000, 40));
  EXPECT_THAT(bytes.size(), Le((kRecordedCells + 4 * kRecordedPoints + 5 * JobSeries::kEvaluations) * 10));
  auto series = unpack_series(bytes);
  ASSERT_TRUE(series.ok()) << series.status();
  const JobSeries::Points points = series->points(1024);
  ASSERT_EQ(points.width, 32);
  EXPECT_EQ(points.steps[10], 320);
  EXPECT_NEAR(points.loss[10], 335.5, 1e-9);
  EXPECT_NEAR(points.steps_per_second[10], 100, 1e-6);
  EXPECT_THAT(series->heat_map(0, 20'000, 256).members, SizeIs(40));
  series->add(StepPoint{.step = 20'001, .loss = 7});
  EXPECT_EQ(series->newest(), 20'001);
  EXPECT_LT(series->points(1024).loss.back(), points.loss.back());
  EXPECT_EQ(series->points(1024).loss[10], points.loss[10]);
}

TEST(SeriesRecordTest, OtherBytesAreRefused) {
  EXPECT_TRUE(unpack_series(pack_series(JobSeries())).ok());
  const std::string whole = pack_series(series_of(20, 2));
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_TRUE(absl::IsDataLoss(unpack_series(whole.substr(0, length)).status())) << length;
  EXPECT_TRUE(absl::IsDataLoss(unpack_series("\xA1\x67version\x01").status()));
  EXPECT_TRUE(absl::IsDataLoss(unpack_series(std::string(1 << 20, '\x81')).status())) << "lists in lists";
  EXPECT_TRUE(absl::IsDataLoss(unpack_series("\x9b\x7f\xff\xff\xff\xff\xff\xff\xff").status()))
      << "a list of 2^63";
}

}  // namespace
}  // namespace paceline::dashboard
