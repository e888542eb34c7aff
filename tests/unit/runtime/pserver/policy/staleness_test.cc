#include "runtime/pserver/policy/staleness.h"

#include <gtest/gtest.h>

namespace paceline::pserver {
namespace {

TEST(StalenessTest, UpdatesBetweenReadAndUpdate) {
  EXPECT_EQ(staleness_of({.version = 7}, {.read = 6}), 0);
  EXPECT_EQ(staleness_of({.version = 7}, {.read = 2}), 4);
}

TEST(StalenessTest, Counts) {
  StalenessTally tally;
  EXPECT_EQ(tally.mean(), 0);
  for (const std::int64_t staleness : {0, 1, 1, 30, 31, 32, 1000}) tally.applied(staleness);
  tally.dropped();
  EXPECT_EQ(tally.applied_count(), 7);
  EXPECT_EQ(tally.dropped_count(), 1);
  EXPECT_EQ(tally.max(), 1000);
  EXPECT_DOUBLE_EQ(tally.mean(), 1095.0 / 7);
  EXPECT_EQ(tally.histogram()[0], 1);
  EXPECT_EQ(tally.histogram()[1], 2);
  EXPECT_EQ(tally.histogram()[30], 1);
  EXPECT_EQ(tally.histogram()[31], 3) << "31 or more";

  StalenessTally other;
  other.applied(5);
  other.add(tally);
  EXPECT_EQ(other.applied_count(), 8);
  EXPECT_EQ(other.dropped_count(), 1);
  EXPECT_EQ(other.max(), 1000);
  EXPECT_DOUBLE_EQ(other.mean(), 1100.0 / 8);
}

}  // namespace
}  // namespace paceline::pserver
