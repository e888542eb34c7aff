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

TEST(ModesTest, StudyComparesEachModeOnce) {
  const auto names = [](const std::vector<Mode>& modes) {
    std::vector<std::string> found;
    for (const Mode& mode : modes) found.push_back(mode.name);
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(modes_to_compare(8, 1, {1, 4})),
            (Names{"synchronous", "7 + 1 backups", "first 7 of 8", "bounded, staleness 1",
                   "bounded, staleness 4", "asynchronous"}));
  EXPECT_EQ(names(modes_to_compare(8, 0, {})), (Names{"synchronous", "asynchronous"}));
}

}  // namespace
}  // namespace paceline::simulation
