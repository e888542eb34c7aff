#include "runtime/simulation/stragglers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::simulation {
namespace {

TEST(StragglersTest, AHundredMachines) {
  const StragglerCase result = *straggler_case(100, 0.1, {.steps = 300, .late_workers_stop = true});
  EXPECT_NEAR(result.slowest_ms, 25.86, 0.05);
  EXPECT_EQ(result.best_backups, 4);
  ASSERT_EQ(result.modes.size(), 6u);
  EXPECT_EQ(result.modes[0].mode.name, "synchronous");
  EXPECT_EQ(result.modes[1].mode.name, "96 + 4 backups");
  EXPECT_EQ(result.modes[2].mode.name, "first 96 of 100");
  EXPECT_EQ(result.modes[5].mode.name, "asynchronous");
  EXPECT_NEAR(result.modes[0].gradients_per_ms, 3.87, 0.03);
  EXPECT_NEAR(result.modes[1].gradients_per_ms, 4.034, 0.03);
  EXPECT_NEAR(result.modes[2].gradients_per_ms, 4.034, 0.03) << "as many samples in a time, in smaller steps";
  EXPECT_NEAR(result.modes[5].gradients_per_ms, 100 / 20.19, 0.05);
  const double mean_and_rest = 100 / 96.0;
  EXPECT_NEAR(result.modes[1].report.step_ms(), mean_and_rest * result.modes[2].report.step_ms(), 0.1)
      << "a backup's gradient has more samples";
  // All begin each step together, so it is as on paper.
  bool best_seen = false;
  for (const BackupPoint& point : result.backups) {
    EXPECT_NEAR(point.gradients_per_ms, point.on_paper, 0.01 * point.on_paper) << point.backups;
    EXPECT_LE(point.on_paper, 4.04);
    best_seen |= point.backups == 4;
  }
  EXPECT_TRUE(best_seen);
}

TEST(StragglersTest, OneWorkerHasNoBackups) {
  const StragglerCase result = *straggler_case(1, 0.3, {.steps = 50, .staleness = {}});
  EXPECT_EQ(result.best_backups, 0);
  EXPECT_TRUE(result.backups.empty());
  ASSERT_EQ(result.modes.size(), 2u);
  EXPECT_DOUBLE_EQ(result.modes[0].gradients_per_ms, result.modes[1].gradients_per_ms);
}

TEST(StragglersTest, RefusesNumbersOutOfRange) {
  EXPECT_EQ(std::string(straggler_case(0, 0.1, {}).status().message()), "workers is 0; allowed: 1 to 10000");
  EXPECT_EQ(std::string(straggler_case(5, -1, {}).status().message()), "sigma is -1; allowed: 0 to 3");
  EXPECT_EQ(std::string(straggler_case(5, 0.1, {.steps = 0}).status().message()),
            "steps is 0; allowed: 1 to 1000000");
  EXPECT_EQ(std::string(straggler_case(5, 0.1, {.staleness = {-1}}).status().message()),
            "parameter servers: staleness is -1; allowed: 0 to 4611686018427387903");
}

TEST(StragglersTest, SlowOneThatIsReplacedCostsItsFirstStepsAlone) {
  const DelayModel delays{.log_mean = 3, .slow_workers = 1, .slow_factor = 10};
  const StragglerCase result = *straggler_case(4, 0, {.delays = delays, .steps = 100, .replaced_after = 20});
  const double ms = std::exp(3);
  EXPECT_NEAR(result.modes[0].report.step_ms(), 10 * ms, 1e-9);
  EXPECT_EQ(result.modes[1].mode.name, "slow replaced after 20");
  EXPECT_NEAR(result.modes[1].report.step_ms(), (20 * 10 * ms + 80 * ms) / 100, 1e-9);
  EXPECT_EQ(straggler_case(4, 0, {.delays = delays, .replaced_after = -1}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace paceline::simulation
