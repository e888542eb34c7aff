#include "runtime/simulation/modes.h"

#include <gtest/gtest.h>

#include "runtime/pserver/policy/policy.h"

namespace paceline::simulation {
namespace {

TEST(ModesTest, NamesAndSizes) {
  struct Case {
    Mode mode;
    const char* name;
    double samples, batch;
  };
  const Case cases[] = {
      {synchronous(8), "synchronous", 1, 1},
      {with_backups(8, 3), "5 + 3 backups", 1.6, 1},
      {dropping(8, 2), "first 6 of 8", 1, 0.75},
      {bounded(8, 4), "bounded, staleness 4", 1, 1},
      {asynchronous(8), "asynchronous", 1, 1},
      {delay_compensated(8, 0.5), "asynchronous, lambda 0.5", 1, 1},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(c.mode.name, c.name);
    EXPECT_DOUBLE_EQ(c.mode.samples_per_gradient(), c.samples) << c.name;
    EXPECT_DOUBLE_EQ(c.mode.batch(), c.batch) << c.name;
    EXPECT_TRUE(pserver::make_policy(c.mode.spec, {.total_steps = 1}).ok()) << c.name;
  }
}

}  // namespace
}  // namespace paceline::simulation
