#include "runtime/simulation/delays.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"

namespace paceline::simulation {
namespace {

constexpr DelayModel kModel{.log_mean = 3, .log_deviation = 0.1};

// E[max of n draws] of LogNormal(3, 0.1), by numerical integration of the distribution.
double expected_slowest(int n, double sigma) {
  constexpr int kSteps = 20000;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double z = -9 + 18 * (i + 0.5) / kSteps;
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * M_PI),
                 below = 0.5 * std::erfc(-z / std::sqrt(2.0));
    sum += std::exp(3 + sigma * z) * n * std::pow(below, n - 1) * density * 18 / kSteps;
  }
  return sum;
}

TEST(DelaysTest, TheSlowestOfManyIsAsCalculated) {
  struct Case {
    int count;
    double ms;
  };
  for (const Case& c : {Case{1, 20.13}, Case{10, 23.47}, Case{100, 25.86}, Case{1000, 27.75}}) {
    const double slowest = order_statistics(kModel, c.count, 3000, 1).back();
    EXPECT_NEAR(slowest, c.ms, 0.01 * c.ms) << c.count;
    EXPECT_NEAR(expected_slowest(c.count, 0.1), c.ms, 0.005 * c.ms) << c.count;
    for (const double sigma : {0.3, 0.6}) {
      const double drawn = order_statistics({.log_deviation = sigma}, c.count, 3000, 2).back();
      EXPECT_NEAR(drawn, expected_slowest(c.count, sigma), 0.03 * drawn) << c.count << " " << sigma;
    }
  }
}

TEST(DelaysTest, OfAHundredMachinesFourAreBestSpare) {
  const std::vector<double> order = order_statistics(kModel, 100, 30000, 1);
  EXPECT_EQ(best_backups(order), 4);
  EXPECT_NEAR(96 / order[95], 4.034, 0.004);
  EXPECT_NEAR(100 / order[99], 3.87, 0.01);
}

TEST(DelaysTest, NoBackupHelpsWhereAllTakeTheSame) {
  EXPECT_EQ(best_backups(order_statistics({.log_deviation = 0}, 10, 2, 1)), 0);
  EXPECT_EQ(best_backups(order_statistics(kModel, 1, 10, 1)), 0);
}

TEST(DelaysTest, ASeedGivesTheSameDelaysAndSlowWorkersAreTheLast) {
  Delays a(kModel, 3, 7), b(kModel, 3, 7), other(kModel, 3, 8);
  Delays slow({.log_mean = 3, .log_deviation = 0.1, .slow_workers = 1, .slow_factor = 10}, 3, 7);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    for (int worker = 0; worker < 3; ++worker) {
      const double ms = a.next_ms(worker);
      EXPECT_EQ(ms, b.next_ms(worker));
      EXPECT_DOUBLE_EQ(slow.next_ms(worker), worker == 2 ? 10 * ms : ms);
      differs |= ms != other.next_ms(worker);
    }
  }
  EXPECT_TRUE(differs);
}

TEST(DelaysTest, SlowWorkerIsAsTheOthersOnceAnotherOneHasItsPlace) {
  Delays all(kModel, 2, 7);
  Delays replaced(
      {.log_mean = 3, .log_deviation = 0.1, .slow_workers = 1, .slow_factor = 10, .slow_turns = 5}, 2, 7);
  for (int i = 0; i < 10; ++i) {
    const double ms = all.next_ms(1);
    EXPECT_DOUBLE_EQ(replaced.next_ms(1), i < 5 ? 10 * ms : ms) << i;
  }
}

}  // namespace
}  // namespace paceline::simulation
