#include "controller/dashboard/status_samples.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cmath>
#include <limits>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/allocator_interface.h>
#endif
#endif

#include "controller/cluster/kube/times.h"

namespace paceline::dashboard {
namespace {

using kube::Json;

constexpr Step kLast = std::numeric_limits<Step>::max();
const WallTime kBegin = *kube::parse_time("2026-01-31T12:00:00Z");

Json sampled_job(Step step, double slow_ms = 20) {
  const auto member = [](int index, double ms) {
    return Json{{"role", "worker"},    {"index", index}, {"rank", 1 - index},
                {"computeMs", ms - 1}, {"waitMs", 1.0},  {"stepMs", ms}};
  };
  return {{"metadata", {{"creationTimestamp", "2026-01-31T12:00:00Z"}}},
          {"status",
           {{"progress", {{"step", step}, {"loss", 1.0 / static_cast<double>(step)}}},
            {"members", Json::array({member(0, 10), member(1, slow_ms)})}}}};
}

std::size_t allocated_bytes() {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  return __sanitizer_get_current_allocated_bytes();
#endif
#endif
  const auto all = ::mallinfo2();
  return all.uordblks + all.hblkhd;
}

JobSeries replayed(const StatusSamples& samples) {
  JobSeries series;
  samples.add_to(series);
  return series;
}

TEST(StatusSamplesTest, StepsAndMembersAreTold) {
  StatusSamples samples;
  EXPECT_EQ(samples.newest(), -1);
  EXPECT_TRUE(samples.add(sampled_job(8), kBegin + std::chrono::seconds(1)));
  EXPECT_FALSE(samples.add(sampled_job(8), kBegin + std::chrono::seconds(2)));
  EXPECT_FALSE(samples.add(sampled_job(kLast), kBegin + std::chrono::seconds(2)));
  EXPECT_TRUE(samples.add(sampled_job(16), kBegin + std::chrono::seconds(3)));
  EXPECT_EQ(samples.newest(), 16);
  const JobSeries series = replayed(samples);
  const JobSeries::Points points = series.points(100);
  EXPECT_EQ(points.steps, (std::vector<Step>{8, 16}));
  EXPECT_EQ(points.seconds, (std::vector<double>{1, 3}));
  EXPECT_DOUBLE_EQ(points.steps_per_second[1], 4);
  const JobSeries::HeatMap map = series.heat_map(0, kLast, 100);
  EXPECT_EQ(map.members, (std::vector<std::string>{"worker-1", "worker-0"}));
  EXPECT_EQ(map.ranks, 2U);
  // Between the two, what the second said holds for each step.
  const std::size_t part = kParts.size() - 1;
  for (std::size_t i = 0; i < map.steps.size(); ++i) {
    const float ms = map.ms[part][i];
    if (map.steps[i] > 8) {
      EXPECT_EQ(ms, 20) << map.steps[i];
    } else if (map.steps[i] < 8) {
      EXPECT_TRUE(std::isnan(ms)) << map.steps[i];
    }
  }
}

// Each viewer's question makes the series anew.
TEST(StatusSamplesTest, SeriesOfALargeJobTakesLittleMemory) {
  StatusSamples samples;
  Json job = sampled_job(1);
  Json& members = job["status"]["members"];
  for (int i = 2; i < 1024; ++i) {
    members.push_back(members[0]);
    members.back()["index"] = i;
    members.back()["rank"] = i;
  }
  for (Step step = 1; step <= 16; ++step) {
    job["status"]["progress"]["step"] = step * 50'000;
    ASSERT_TRUE(samples.add(job, kBegin + std::chrono::seconds(step)));
  }
  const std::size_t before = allocated_bytes();
  const JobSeries series = replayed(samples);
  const std::size_t after = allocated_bytes();
  EXPECT_EQ(series.members(), StatusSamples::kMembers);
  EXPECT_LT(after - before, std::size_t{4} << 20);
}

// Its status has another start then, and a process that saw only that counts alike.
TEST(StatusSamplesTest, ResumedJobsCountFromTheirCreation) {
  StatusSamples samples, later;
  Json job = sampled_job(8);
  job["status"]["startTime"] = "2026-01-31T12:00:00Z";
  samples.add(job, kBegin + std::chrono::seconds(1));
  Json resumed = sampled_job(16);
  resumed["status"]["startTime"] = "2026-01-31T13:00:00Z";
  for (StatusSamples* const each : {&samples, &later})
    each->add(resumed, kBegin + std::chrono::seconds(3601));
  EXPECT_EQ(replayed(samples).points(100).seconds, (std::vector<double>{1, 3601}));
  EXPECT_EQ(replayed(later).points(100).seconds, (std::vector<double>{3601}));
}

TEST(StatusSamplesTest, NothingIsKnownWithoutProgress) {
  StatusSamples samples;
  EXPECT_FALSE(samples.add(Json::object(), kBegin));
  EXPECT_FALSE(samples.add(Json::parse(R"({"status": {"progress": "x", "members": 3}})"), kBegin));
  EXPECT_EQ(replayed(samples).newest(), -1);
}

TEST(StatusSamplesTest, EvaluationsAreToldOnce) {
  StatusSamples samples;
  for (Step step = 1; step <= 4; ++step) {
    Json told = sampled_job(step);
    told["status"]["progress"]["testAccuracy"] = step < 3 ? 0.5 : 0.6;
    samples.add(told, kBegin);
  }
  const JobSeries series = replayed(samples);
  ASSERT_EQ(series.evaluations().size(), 2U);
  EXPECT_EQ(series.evaluations()[0].step, 1);
  EXPECT_EQ(series.evaluations()[1].step, 3);
}

TEST(StatusSamplesTest, ItGoesOnFromAnEarlierCheckpoint) {
  StatusSamples samples;
  for (const Step step : {10, 20, 30, 15}) samples.add(sampled_job(step), kBegin);
  EXPECT_EQ(replayed(samples).points(100).steps, (std::vector<Step>{10, 15}));
}

// A series that already has some of them gets the others, or all once more: it is the same.
TEST(StatusSamplesTest, ASeriesGoesOn) {
  StatusSamples samples;
  for (Step step = 1; step <= 3; ++step) samples.add(sampled_job(step * 8), kBegin);
  JobSeries series = replayed(samples);
  const std::uint64_t known = samples.version();
  for (Step step = 4; step <= 6; ++step) {
    Json told = sampled_job(step * 8);
    told["status"]["progress"]["testLoss"] = 0.5;
    samples.add(told, kBegin);
  }
  const JobSeries all = replayed(samples);
  for (const std::uint64_t from : {known, std::uint64_t{0}}) {
    samples.add_to(series, from);
    EXPECT_EQ(series.points(100).steps, all.points(100).steps) << from;
    EXPECT_EQ(series.evaluations().size(), 1U) << from;
    const JobSeries::HeatMap map = series.heat_map(0, kLast, 100), whole = all.heat_map(0, kLast, 100);
    EXPECT_EQ(map.steps, whole.steps);
    for (std::size_t i = 0; i < whole.ms.back().size(); ++i) {
      const float ms = map.ms.back()[i], wanted = whole.ms.back()[i];
      EXPECT_TRUE(ms == wanted || (std::isnan(ms) && std::isnan(wanted))) << from << ": " << i;
    }
  }
}

TEST(StatusSamplesTest, LongJobsKeepBoundedSamples) {
  StatusSamples samples;
  for (Step step = 1; step <= 5000; ++step) samples.add(sampled_job(step * 100), kBegin);
  const JobSeries series = replayed(samples);
  EXPECT_LE(series.points(100'000).steps.size(), StatusSamples::kSamples);
  EXPECT_EQ(samples.newest(), 500'000);
  // Fine where it is new, coarse where it is old; all of it is told of.
  const std::vector<Step> steps = series.points(1'000'000).steps;
  EXPECT_LE(steps.front(), 100);
  std::size_t early = 0, late = 0;
  for (const Step step : steps) ++(step < 250'000 ? early : late);
  EXPECT_GT(early, 10U);
  EXPECT_GT(late, 4 * early);
  // The map has no gaps, however many steps lie between two samples.
  for (const Step from : {Step{0}, Step{400'000}, Step{499'000}}) {
    const JobSeries::HeatMap map = series.heat_map(from, kLast, 400);
    ASSERT_GT(map.steps.size(), 100U);
    for (std::size_t i = 0; i < map.ms.back().size(); ++i) {
      if (map.steps[i % map.steps.size()] >= 100) {
        ASSERT_FALSE(std::isnan(map.ms.back()[i])) << from << ": " << i;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::dashboard
