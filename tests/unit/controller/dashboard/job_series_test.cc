#include "controller/dashboard/job_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "controller/dashboard/series_json.h"

namespace paceline::dashboard {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::SizeIs;

MemberPoint member(std::string name, Step step, float compute, float wait) {
  return {.member = std::move(name), .step = step, .ms = {0, compute, wait, 0, 0, 0, compute + wait}};
}

TEST(JobSeriesTest, PointsAreMeansOfSteps) {
  JobSeries series;
  for (Step step = 1; step <= 4000; ++step) {
    series.add(StepPoint{.step = step,
                         .loss = static_cast<double>(step),
                         .learning_rate = 0.5,
                         .seconds = static_cast<double>(step) / 100});
  }
  const JobSeries::Points points = series.points(1000);
  EXPECT_EQ(points.width, 8);
  ASSERT_THAT(points.steps, SizeIs(501));
  EXPECT_EQ(points.steps[1], 8);
  EXPECT_NEAR(points.loss[1], 11.5, 1e-9);
  EXPECT_NEAR(points.learning_rate[1], 0.5, 1e-9);
  EXPECT_TRUE(std::isnan(points.steps_per_second[0]));
  EXPECT_NEAR(points.steps_per_second[1], 100, 1e-6);
  EXPECT_EQ(series.newest(), 4000);
}

TEST(JobSeriesTest, AResumedRunGoesOnFromItsCheckpoint) {
  JobSeries series;
  for (Step step = 0; step < 20; ++step) series.add(StepPoint{.step = step, .loss = 1});
  for (Step step = 10; step < 15; ++step) series.add(StepPoint{.step = step, .loss = 2});
  const JobSeries::Points points = series.points(1000);
  ASSERT_THAT(points.steps, SizeIs(15));
  EXPECT_EQ(points.loss[9], 1);
  EXPECT_EQ(points.loss[10], 2);
}

TEST(JobSeriesTest, AResumedRunHasNoEvaluationsAheadOfIt) {
  JobSeries series;
  for (Step step = 1; step <= 20; ++step) series.add(StepPoint{.step = step});
  series.add(EvaluationPoint{.step = 10});
  series.add(EvaluationPoint{.step = 20});
  const std::uint64_t version = series.version();
  series.add(StepPoint{.step = 11});
  EXPECT_EQ(series.newest(), 11);
  EXPECT_NE(series.version(), version);
  ASSERT_THAT(series.evaluations(), SizeIs(1));
  EXPECT_EQ(series.evaluations()[0].step, 10);
}

TEST(JobSeriesTest, TheLastEvaluationOfAStepCounts) {
  JobSeries series;
  series.add(EvaluationPoint{.step = 20, .loss = 1});
  series.add(EvaluationPoint{.step = 10, .loss = 2});  // an evaluator's, which comes late
  series.add(EvaluationPoint{.step = 20, .loss = 3});
  ASSERT_THAT(series.evaluations(), SizeIs(2));
  EXPECT_EQ(series.evaluations()[0].step, 10);
  EXPECT_EQ(series.evaluations()[1].loss, 3);
}

TEST(JobSeriesTest, EvaluationsAreBounded) {
  JobSeries series;
  for (Step step = 0; step < 20'000; ++step) series.add(EvaluationPoint{.step = step});
  EXPECT_LE(series.evaluations().size(), JobSeries::kEvaluations);
  EXPECT_EQ(series.evaluations().front().step, 0);
  EXPECT_EQ(series.evaluations().back().step, 19'999);
}

TEST(JobSeriesTest, MembersAreBounded) {
  JobSeries series;
  for (std::size_t i = 0; i < JobSeries::kMembers + 10; ++i)
    series.add(member("worker-" + std::to_string(i), 0, 1, 1));
  EXPECT_THAT(series.heat_map(0, 0, 10).members, SizeIs(JobSeries::kMembers));
}

TEST(JobSeriesTest, HeatMapHasRowsByRankAndAlignedColumns) {
  JobSeries series;
  series.set_view({"worker-1", "chief-0"});
  for (Step step = 0; step < 100; ++step) {
    series.add(member("chief-0", step, 10, 0));
    if (step % 2 == 0) series.add(member("worker-1", step, 30, 5));
    if (step < 10) series.add(member("worker-0", step, 1, 1));
  }
  const JobSeries::HeatMap map = series.heat_map(0, 99, 50);
  EXPECT_THAT(map.members, ElementsAre("worker-1", "chief-0", "worker-0"));
  EXPECT_EQ(map.ranks, 2U);
  EXPECT_EQ(map.width, 2);
  ASSERT_THAT(map.steps, SizeIs(50));
  const std::size_t compute = 1;
  EXPECT_EQ(map.ms[compute][0], 30);
  EXPECT_EQ(map.ms[compute][50], 10);
  EXPECT_EQ(map.ms[compute][100], 1);
  EXPECT_TRUE(std::isnan(map.ms[compute][100 + 20]));
  const JobSeries::HeatMap close = series.heat_map(90, 94, 50);
  EXPECT_THAT(close.steps, ElementsAre(90, 91, 92, 93, 94));
  EXPECT_TRUE(std::isnan(close.ms[compute][1])) << "worker-1 told nothing of step 91";
}

TEST(JobSeriesTest, RowThatKeepsFewerStepsMakesAllCoarser) {
  JobSeries series;
  for (Step step = 0; step < 600; ++step) series.add(member("worker-1", step, 4, 0));
  for (Step step = 0; step < 500; ++step) series.add(member("worker-0", step, static_cast<float>(step), 0));
  const JobSeries::HeatMap map = series.heat_map(0, 499, 512);
  EXPECT_THAT(map.members, ElementsAre("worker-0", "worker-1"));
  EXPECT_EQ(map.width, 2) << "worker-1 has no single steps before 88";
  ASSERT_THAT(map.steps, SizeIs(250));
  const std::size_t compute = 1;
  ASSERT_THAT(map.ms[compute], SizeIs(500));
  EXPECT_EQ(map.ms[compute][0], 0.5F);
  EXPECT_EQ(map.ms[compute][249], 498.5F);
  EXPECT_EQ(map.ms[compute][250], 4);
  EXPECT_EQ(map.ms[compute][499], 4);
}

TEST(JobSeriesTest, HeatMapsAreBounded) {
  JobSeries series;
  series.add(StepPoint{.step = Step{1} << 62});
  EXPECT_THAT(series.heat_map(0, Step{1} << 62, 10).steps, SizeIs(0)) << "no member has told anything";
  for (std::size_t i = 0; i < JobSeries::kMembers; ++i) {
    for (Step step = 0; step < 400; ++step) series.add(member("worker-" + std::to_string(i), step, 1, 1));
  }
  const JobSeries::HeatMap map = series.heat_map(0, 399, 400);
  EXPECT_LE(map.steps.size() * map.members.size() * kParts.size(), JobSeries::kCells);
  EXPECT_GT(map.steps.size(), 50U);
}

// The same as if each had gone into the pyramid at once.
TEST(JobSeriesTest, PointsThatAreKeptOneByOneTellTheSame) {
  for (const std::size_t count : {JobSeries::kTold / 2, JobSeries::kTold, JobSeries::kTold + 1}) {
    SCOPED_TRACE(count);
    JobSeries series;
    Pyramid<float> expected(kParts.size(), JobSeries::kColumns);
    Step step = 0, newest = -1;
    for (std::size_t i = 0; i < count; ++i) {
      step = i % 100 == 99 ? step - 50 : step + 1 + static_cast<Step>(i % 7);
      const MemberPoint point = member("worker-0", step, 10 + static_cast<float>(i % 13), 1);
      const Step first = step <= newest ? step : newest + 1;
      series.add(point, first, step);
      if (first <= newest) expected.cut(first - 1);
      expected.add_span(first, step, point.ms, step);
      newest = step;
    }
    for (const auto& [from, columns] : {std::pair<Step, std::size_t>{0, 400}, {newest - 300, 400}, {0, 7}}) {
      const JobSeries::HeatMap map = series.heat_map(from, newest, columns);
      const std::size_t level = expected.level_of(from, newest, columns);
      ASSERT_EQ(map.width, Step{1} << level);
      for (std::size_t part = 0; part < kParts.size(); ++part) {
        for (std::size_t i = 0; i < map.steps.size(); ++i) {
          const float mean = expected.mean(level, map.steps[i] >> level, part);
          ASSERT_TRUE(map.ms[part][i] == mean || (std::isnan(map.ms[part][i]) && std::isnan(mean)))
              << map.steps[i] << ": " << map.ms[part][i] << " and not " << mean;
        }
      }
    }
  }
}

TEST(JobSeriesTest, EmptyOnesHaveNothing) {
  const JobSeries series;
  EXPECT_EQ(series.newest(), -1);
  EXPECT_THAT(series.points(10).steps, SizeIs(0));
  EXPECT_THAT(series.heat_map(0, 100, 10).steps, SizeIs(0));
  const Json json = Json::parse(heat_map_json(series, 0, 100, 10, kParts, Json()));
  EXPECT_EQ(json["members"], Json::array());
}

TEST(SeriesJsonTest, NumbersThatAreNotFiniteAreNull) {
  JobSeries series;
  series.add(StepPoint{.step = 1, .loss = 0.125, .learning_rate = 0.1, .seconds = 1});
  series.add(StepPoint{.step = 2, .loss = std::nan(""), .learning_rate = 0.1, .seconds = 1.5});
  series.add(EvaluationPoint{.step = 2, .loss = 0.5, .accuracy = 0.75, .seconds = 1.5, .auc = 0.8});
  const Json json = Json::parse(series_json(series, 1000, 64));
  EXPECT_EQ(json["stepsPerPoint"], 1);
  EXPECT_EQ(json["step"], Json({1, 2}));
  EXPECT_EQ(json["loss"], Json({0.125, nullptr}));
  EXPECT_EQ(json["stepsPerSecond"], Json({nullptr, 2}));
  EXPECT_EQ(json["samplesPerSecond"], Json({nullptr, 128}));
  EXPECT_EQ(json["evaluations"][0]["auc"], 0.8);
  EXPECT_FALSE(Json::parse(series_json(series, 1000, std::nullopt)).contains("samplesPerSecond"));
}

TEST(SeriesJsonTest, HeatMapTellsWhereMembersAre) {
  JobSeries series;
  series.set_view({"worker-0"});
  series.add(member("worker-0", 3, 1.23456F, 2));
  const Json members = {{{"role", "worker"}, {"index", 0}, {"host", "node-a"}, {"pod", "digits-worker-0-0"}}};
  const Json json =
      Json::parse(heat_map_json(series, 0, 10, 10, parts_named("compute,step").value(), members));
  EXPECT_EQ(
      json["members"],
      Json::array({{{"name", "worker-0"}, {"rank", 0}, {"node", "node-a"}, {"pod", "digits-worker-0-0"}}}));
  EXPECT_EQ(json["parts"], Json({"compute", "step"}));
  EXPECT_EQ(json["steps"], Json({0, 1, 2, 3}));
  EXPECT_EQ(json["values"]["compute"], Json::array({{nullptr, nullptr, nullptr, 1.235}}));
  EXPECT_FALSE(json["values"].contains("wait"));
}

TEST(SeriesJsonTest, PartsAreChosenByName) {
  EXPECT_THAT(parts_named("").value(), SizeIs(kParts.size()));
  EXPECT_THAT(parts_named("wait,input").value(), ElementsAre("input", "wait"));
  for (const char* other : {"x", "wait,nonsense", ",", "wait,"})
    EXPECT_TRUE(absl::IsInvalidArgument(parts_named(other).status())) << other;
}

}  // namespace
}  // namespace paceline::dashboard
