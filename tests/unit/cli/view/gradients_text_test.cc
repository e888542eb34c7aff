#include "cli/view/gradients_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "cli/view/fit_columns.h"
#include "cli/view/terminal.h"

namespace paceline::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RunState with(std::vector<StalenessTelemetry> workers) {
  RunState state;
  for (StalenessTelemetry& each : workers)
    state.members.push_back({.telemetry = {.staleness = std::move(each)}});
  state.members.push_back({.role = Role::kServer});
  return state;
}

StalenessTelemetry counts(std::vector<std::int64_t> histogram, double mean = 0, std::int64_t max = 0) {
  StalenessTelemetry s{.max = max, .mean = mean, .histogram = std::move(histogram)};
  for (const std::int64_t count : s.histogram) s.applied += count;
  return s;
}

TEST(StalenessText, SumsAllWorkersAndJoinsWhatIsAlike) {
  const RunState state = with({counts({60, 20, 5, 5}, 0.5, 3), counts({0, 1, 2, 3, 4, 0, 0, 0, 0}, 3, 4)});
  EXPECT_EQ(staleness_text(state), "0: 60 %, 1: 21 %, 2: 7 %, 3-4: 12 % of 100 gradients; mean 0.75, most 4");
  EXPECT_THAT(staleness_lines(state, kAnyWidth),
              ElementsAre("staleness of 100 gradients:  0: 60 %  1: 21 %  2: 7 %  3-4: 12 %"));
}

TEST(StalenessText, EveryCountIsInOneBucket) {
  std::vector<std::int64_t> one_each(32, 1);
  EXPECT_THAT(
      staleness_lines(with({counts(one_each, 15.5, 31)}), kAnyWidth),
      ElementsAre("staleness of 32 gradients:  0: 3 %  1: 3 %  2: 3 %  3-4: 6 %  5-8: 12 %  9-16: 25 %  "
                  "17-30: 44 %  31+: 3 %"));
  for (std::size_t i = 1; i < one_each.size(); ++i) {
    std::vector<std::int64_t> histogram(32);
    histogram[i] = 1'000;
    histogram[0] = 1;
    const auto lines = staleness_lines(with({counts(histogram, 1, 31)}), kAnyWidth);
    ASSERT_EQ(lines.size(), 1u) << i;
    EXPECT_THAT(lines[0], ::testing::MatchesRegex("staleness of 1,001 gradients:  0: <1 %  [0-9+-]+: >99 %"));
  }
}

TEST(StalenessText, WhereNothingIsStaleThereIsNothingToSay) {
  for (const RunState& state : {RunState(), with({}), with({counts({})}), with({counts({500, 0, 0})})}) {
    EXPECT_EQ(staleness_text(state), "");
    EXPECT_THAT(staleness_lines(state, kAnyWidth), IsEmpty());
  }
}

TEST(StalenessText, WithoutCountsTheMeanIsLeft) {
  const RunState state = with({{.applied = 10, .max = 7, .mean = 2.5}});
  EXPECT_EQ(staleness_text(state), "mean 2.50, most 7");
  EXPECT_THAT(staleness_lines(state, kAnyWidth), IsEmpty());
}

TEST(StalenessText, OnANarrowTerminalTheLeastSharesGoFirst) {
  const RunState state = with({counts({60, 20, 1, 4, 15, 9, 2, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 3}, 2, 17)});
  for (int width = 30; width < 120; ++width) {
    const auto lines = staleness_lines(state, width);
    EXPECT_LE(lines.size(), 2u) << width;
    for (const std::string& line : lines) EXPECT_LE(display_width(line), width);
    EXPECT_THAT(absl::StrJoin(lines, " "), ::testing::HasSubstr(" 0: 50 %")) << width;
  }
  EXPECT_THAT(staleness_lines(state, 40),
              ElementsAre("staleness of 121 gradients:  0: 50 %", "1: 17 %  3-4: 16 %  5-8: 9 %  9-16: 6 %"));
}

TEST(StalenessText, NonsenseDoesNotBreakIt) {
  const RunState state = with(
      {counts(std::vector<std::int64_t>(100, 1), 1, 5), {.applied = -5, .max = 3, .histogram = {-7, 2}}});
  EXPECT_THAT(staleness_lines(state, kAnyWidth), ::testing::SizeIs(1));
  EXPECT_NE(staleness_text(state), "");
}

api::TrainingJob job_of(std::int64_t workers, std::int64_t batch) {
  api::TrainingJob job;
  job.spec.strategy.type = api::StrategyType::kParameterServer;
  job.spec.replica_specs.chief = api::ReplicaSpec{};
  job.spec.replica_specs.worker = api::ReplicaSpec{.replicas = workers - 1};
  job.spec.training.emplace().global_batch_size = batch;
  return job;
}

TEST(GradientsText, DroppingWithoutBackupsCostsSamples) {
  api::TrainingJob job = job_of(4, 64);
  job.spec.strategy.parameter_server.gradients_per_step = 3;
  ASSERT_TRUE(step_gradients(job));
  EXPECT_EQ(samples_per_step(job), 48);
  EXPECT_EQ(step_text(*step_gradients(job)),
            "each step counts the first 3 of 4 gradients: 48 of 64 samples (75 %)");
  job.spec.training->global_batch_size = 3001;
  EXPECT_DOUBLE_EQ(samples_per_step(job), 2250.75);
  EXPECT_EQ(samples_text(*step_gradients(job)), "about 2,251 of 3,001 samples (75 %)");
  job.spec.strategy.parameter_server.gradients_per_step = 1;
  job.spec.training->global_batch_size = 64;
  EXPECT_EQ(step_text(*step_gradients(job)),
            "each step counts the first gradient of 4: 16 of 64 samples (25 %)");
}

TEST(GradientsText, WithBackupsAStepIsAWholeBatch) {
  api::TrainingJob job = job_of(4, 64);
  job.spec.strategy.backup_workers = 1;
  ASSERT_TRUE(step_gradients(job));
  EXPECT_EQ(samples_per_step(job), 64);
  EXPECT_EQ(step_text(*step_gradients(job)), "each step counts the first 3 of 4 gradients: all 64 samples");
}

TEST(GradientsText, WhereEverybodysCountThereIsNothingToSay) {
  api::TrainingJob job = job_of(4, 64);
  EXPECT_FALSE(step_gradients(job));
  EXPECT_EQ(samples_per_step(job), 64);
  job.spec.strategy.parameter_server.gradients_per_step = 4;
  EXPECT_FALSE(step_gradients(job));
  job.spec.strategy.parameter_server.gradients_per_step.reset();
  job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
  EXPECT_FALSE(step_gradients(job));
  job.spec.strategy = {};
  EXPECT_FALSE(step_gradients(job)) << "all-reduce";
  job = job_of(4, 64);
  job.spec.strategy.backup_workers = 1;
  job.spec.training.reset();
  EXPECT_FALSE(step_gradients(job)) << "the templates' own program";
}

TEST(GradientsText, SaysHowManyWereDropped) {
  RunState state = with({{.applied = 900, .dropped = 100}, {.applied = 8'100, .dropped = 1'104}});
  EXPECT_EQ(gradients_text(state), "") << "no step drops gradients";
  state.gradients = StepGradients{.counted = 3, .workers = 4, .samples = 48, .batch = 64};
  EXPECT_EQ(gradients_text(state),
            "each step counts the first 3 of 4 gradients: 48 of 64 samples (75 %); 1,204 of 10,204 gradients "
            "(12 %) "
            "came too late and were dropped");
  state.gradients->samples = 64;
  state.members.resize(1);
  state.members[0].telemetry.staleness->dropped = 0;
  EXPECT_EQ(gradients_text(state),
            "each step counts the first 3 of 4 gradients: all 64 samples; none came too late");
  state.members.clear();
  EXPECT_EQ(gradients_text(state), "each step counts the first 3 of 4 gradients: all 64 samples")
      << "nobody has told yet";
}

}  // namespace
}  // namespace paceline::cli
