#include "cli/run/held_checkpoints.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

using std::chrono::milliseconds;

std::vector<Step> steps(const std::vector<coordinator::CheckpointRecord>& records) {
  std::vector<Step> steps;
  for (const auto& record : records) steps.push_back(record.step);
  return steps;
}

TEST(HeldCheckpoints, WaitForTheStepsBeforeThem) {
  HeldCheckpoints held;
  const TimePoint now{};
  for (const Step step : {200, 300, 400}) held.add({.step = step}, now);
  EXPECT_EQ(steps(held.take(199, now)), std::vector<Step>{});
  EXPECT_EQ(steps(held.take(310, now)), (std::vector<Step>{200, 300}));
  EXPECT_EQ(steps(held.take(310, now)), std::vector<Step>{}) << "each once";
  EXPECT_EQ(steps(held.take(400, now)), std::vector<Step>{400});
}

TEST(HeldCheckpoints, DoNotWaitForLong) {
  HeldCheckpoints held;
  const TimePoint now{};
  held.add({.step = 200}, now);
  held.add({.step = 300}, now + milliseconds(10));
  EXPECT_EQ(steps(held.take(0, now + HeldCheckpoints::kMost - milliseconds(1))), std::vector<Step>{});
  EXPECT_EQ(steps(held.take(0, now + HeldCheckpoints::kMost)), std::vector<Step>{200});
  EXPECT_EQ(steps(held.take(0, now + HeldCheckpoints::kMost + milliseconds(10))), std::vector<Step>{300});
}

TEST(HeldCheckpoints, KnowTheNewestThatWasWritten) {
  HeldCheckpoints held;
  EXPECT_EQ(held.newest(), std::nullopt);
  held.add({.step = 200}, {});
  held.add({.step = 300, .error = "no space"}, {});
  EXPECT_EQ(held.newest(), 200);
  (void)held.take(300, {});
  EXPECT_EQ(held.newest(), 200) << "told or not";
}

TEST(HeldCheckpoints, NewestFailureIsTold) {
  HeldCheckpoints held;
  EXPECT_FALSE(held.failed_save());
  held.add({.step = 200}, {});
  held.add({.step = 300, .error = "no space"}, {});
  ASSERT_TRUE(held.failed_save());
  EXPECT_EQ(held.failed_save()->step, 300);
  EXPECT_EQ(held.failed_save()->error, "no space");
  held.add({.step = 400}, {});
  EXPECT_FALSE(held.failed_save());
}

}  // namespace
}  // namespace paceline::cli
