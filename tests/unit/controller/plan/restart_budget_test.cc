#include "controller/plan/restart_budget.h"

#include <gtest/gtest.h>

namespace paceline::plan {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const WallTime kStart{hours(1'000)};

api::RunPolicy policy_of(std::int64_t limit, std::int64_t window) {
  api::RunPolicy policy;
  policy.backoff_limit = limit;
  policy.restart_window_seconds = window;
  return policy;
}

TEST(RestartBudgetTest, ARestartCountsUntilTheWindowHasPassed) {
  const api::RunPolicy policy = policy_of(2, 10);
  std::vector<api::RestartTime> times;
  note_restart(policy, kStart, times);
  note_restart(policy, kStart + seconds(4), times);
  const auto used = [&](Duration after) { return restart_budget(policy, times, 99, kStart + after).used; };
  EXPECT_EQ(used(seconds(4)), 2);
  EXPECT_EQ(used(seconds(10) - milliseconds(1)), 2);
  EXPECT_EQ(used(seconds(10)), 1);
  EXPECT_EQ(used(seconds(14)), 0);
  EXPECT_TRUE(restart_budget(policy, times, 0, kStart + seconds(4)).is_used_up());
  note_restart(policy, kStart + seconds(12), times);
  EXPECT_EQ(times.size(), 2u) << "the first is forgotten";
}

TEST(RestartBudgetTest, WithoutAWindowAllCountAndNoTimesAreKept) {
  api::RunPolicy policy;
  policy.backoff_limit = 3;
  std::vector<api::RestartTime> times{{kStart, 1}};
  EXPECT_EQ(restart_budget(policy, times, 2, kStart).used, 2);
  note_restart(policy, kStart, times);
  EXPECT_TRUE(times.empty());
}

TEST(RestartBudgetTest, TimesAreBoundedAndNoRestartIsForgottenEarly) {
  const api::RunPolicy policy = policy_of(1'000, 3'600);
  std::vector<api::RestartTime> times;
  for (int i = 0; i < 500; ++i) {
    note_restart(policy, kStart + seconds(i), times);
    EXPECT_LE(times.size(), kMostRestartTimes);
    EXPECT_EQ(restart_budget(policy, times, 0, kStart + seconds(i)).used, i + 1);
  }
  // The earliest are one, at the time of the last of them.
  EXPECT_EQ(restart_budget(policy, times, 0, kStart + seconds(3'600)).used, 500);
  EXPECT_EQ(restart_budget(policy, times, 0, kStart + seconds(500 + 3'600)).used, 0);
}

TEST(RestartBudgetTest, ARestartThatDoesNotCountAfterAllIsTakenBack) {
  const api::RunPolicy policy = policy_of(5, 100);
  std::vector<api::RestartTime> times;
  for (const int at : {0, 10, 20}) note_restart(policy, kStart + seconds(at), times);
  forget_restart(kStart + seconds(10), times);
  EXPECT_EQ(times, (std::vector<api::RestartTime>{{kStart, 1}, {kStart + seconds(20), 1}}));
  forget_restart(kStart - seconds(1), times);
  EXPECT_EQ(times.size(), 2u) << "it was forgotten already";
}

TEST(RestartBudgetTest, AClockThatGoesBackLeavesNothingAhead) {
  api::Restarts restarts;
  restarts.recent = {{kStart, 1}, {kStart + hours(10), 2}};
  restarts.not_before = kStart + hours(11);
  restarts.replacements = {
      {.last = kStart + hours(10), .not_before = kStart + hours(11), .recent = {{kStart + hours(10), 1}}}};
  const WallTime now = kStart + hours(1);
  EXPECT_TRUE(take_into_present(now, seconds(300), restarts));
  EXPECT_EQ(restarts.recent, (std::vector<api::RestartTime>{{kStart, 1}, {now, 2}}));
  EXPECT_EQ(restarts.not_before, now + seconds(300));
  EXPECT_EQ(restarts.replacements[0].last, now);
  EXPECT_EQ(restarts.replacements[0].not_before, now + seconds(300));
  EXPECT_EQ(restarts.replacements[0].recent[0].at, now);
  EXPECT_FALSE(take_into_present(now, seconds(300), restarts)) << "once";
}

TEST(RestartBudgetTest, SaysWhatIsLeft) {
  EXPECT_EQ(text_of({.used = 2, .limit = 6}), "backoffLimit 6, 4 left");
  EXPECT_EQ(text_of({.used = 7, .limit = 6, .window = hours(24)}), "backoffLimit 6 in 24 h, 0 left");
}

}  // namespace
}  // namespace paceline::plan
