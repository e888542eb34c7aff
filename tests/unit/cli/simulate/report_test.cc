#include "cli/simulate/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/plot/picture.h"

namespace paceline::cli {
namespace {

using simulation::TrainingResult;
using ::testing::HasSubstr;

simulation::StragglerCase hundred() {
  return *simulation::straggler_case(100, 0.1, {.steps = 20, .late_workers_stop = true});
}

TEST(StragglersReportTest, TextNamesEveryMode) {
  const std::string text = stragglers_text(hundred());
  EXPECT_THAT(text, HasSubstr("100 workers, sigma 0.10: the slowest of 100 takes 25.8"));
  EXPECT_THAT(text, HasSubstr("best on paper are 96 + 4 backups\n"));
  for (const char* mode : {"\n  synchronous ", "\n  96 + 4 backups ", "\n  first 96 of 100 ",
                           "\n  bounded, staleness 1 ", "\n  bounded, staleness 4 ", "\n  asynchronous "}) {
    EXPECT_THAT(text, HasSubstr(mode));
  }
  EXPECT_THAT(text, HasSubstr(" 96.0 %\n")) << "the batch of those that drop";
  const auto one = *simulation::straggler_case(1, 0.1, {.steps = 5});
  EXPECT_THAT(stragglers_text(one), HasSubstr("no backup worker would help"));
}

TEST(StragglersReportTest, JsonHasWhatTheTextHas) {
  const simulation::StragglerOptions options{.steps = 20, .seed = 9};
  const auto json = nlohmann::json::parse(stragglers_json({hundred()}, options));
  EXPECT_EQ(json["type"], "stragglers");
  EXPECT_EQ(json["seed"], 9);
  EXPECT_EQ(json["steps"], 20);
  ASSERT_EQ(json["cases"].size(), 1u);
  const auto& first = json["cases"][0];
  EXPECT_EQ(first["bestBackups"], 4);
  ASSERT_EQ(first["modes"].size(), 6u);
  EXPECT_EQ(first["modes"][0]["ofSynchronous"], 1.0);
  EXPECT_EQ(first["modes"][2]["batch"], 0.96);
  EXPECT_GT(first["backups"].size(), 5u);
}

TEST(StragglersReportTest, ChartsOfEachSigmaAndEachNumberOfWorkers) {
  std::vector<simulation::StragglerCase> results;
  for (const double sigma : {0.1, 0.6}) {
    for (const int workers : {4, 20})
      results.push_back(*simulation::straggler_case(workers, sigma, {.steps = 20}));
  }
  const std::vector<Chart> charts = stragglers_charts(results);
  ASSERT_EQ(charts.size(), 4u);
  EXPECT_EQ(charts[0].series.size(), 4u) << "two numbers of workers, on paper and not";
  EXPECT_EQ(charts[2].title, "Time of a step, 4 workers");
  EXPECT_EQ(charts[3].series[0].name, "synchronous");
  EXPECT_EQ(charts[3].series[0].points.size(), 2u);
  EXPECT_THAT(picture("Stragglers", charts), HasSubstr("best b backups"));
}

TrainingResult run(double ms, bool reached, bool diverged = false) {
  TrainingResult result;
  result.mode = simulation::asynchronous(4);
  result.evaluations = {{ms / 2, 5, 2.0, 0.5}, {ms, 10, 1.0, 0.9}};
  result.reached = reached;
  result.diverged = diverged;
  result.cluster.ms = ms;
  result.cluster.steps = 10;
  return result;
}

TEST(TrainingReportTest, TheMiddleOfTheRuns) {
  const TrainedSummary all = summary_of({{run(3000, true), run(1000, true), run(2000, true)}}, true);
  EXPECT_EQ(all.ms, 2000);
  EXPECT_EQ(all.reached, 3);
  EXPECT_EQ(all.step_ms, 200);
  EXPECT_EQ(all.accuracy, 0.9);
  EXPECT_EQ(summary_of({{run(3000, false), run(1000, true), run(2000, true)}}, true).ms, 2000);
  EXPECT_TRUE(std::isinf(summary_of({{run(3000, false), run(1000, true), run(2000, false)}}, true).ms));
  EXPECT_EQ(summary_of({{run(3000, false), run(1000, false)}}, false).ms, 3000) << "of two the worse";
  EXPECT_TRUE(std::isinf(summary_of({{run(1000, false, true)}}, false).ms));
}

TEST(TrainingReportTest, TextJsonAndCharts) {
  const TrainingCase result{.workers = 4,
                            .log_deviation = 0.3,
                            .target = "accuracy 0.9",
                            .modes = {{{run(2000, true)}}, {{run(1000, true)}}, {{run(5000, false, true)}}}};
  const std::string text = training_text(result);
  EXPECT_THAT(text, HasSubstr("4 workers, sigma 0.30, to accuracy 0.9\n"));
  EXPECT_THAT(text, HasSubstr(" 2.00     1.00 "));
  EXPECT_THAT(text, HasSubstr(" 1.00     0.50 "));
  EXPECT_THAT(text, HasSubstr("1 of 1\n"));
  EXPECT_THAT(text, HasSubstr("0 of 1, 1 diverged\n"));
  const auto json = nlohmann::json::parse(training_json({result}, 1));
  ASSERT_EQ(json["cases"][0]["modes"].size(), 3u);
  EXPECT_EQ(json["cases"][0]["modes"][0]["seconds"], 2.0);
  EXPECT_TRUE(json["cases"][0]["modes"][2]["seconds"].is_null()) << "never";
  EXPECT_EQ(json["cases"][0]["modes"][0]["runs"][0]["evaluations"].size(), 2u);
  const std::vector<Chart> charts = training_charts({result});
  ASSERT_EQ(charts.size(), 1u);
  ASSERT_EQ(charts[0].series.size(), 3u);
  EXPECT_EQ(charts[0].series[0].points.size(), 1u) << "what is below 0.8 is left out";
}

}  // namespace
}  // namespace paceline::cli
