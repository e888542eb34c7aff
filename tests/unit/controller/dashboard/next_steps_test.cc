#include "controller/dashboard/next_steps.h"

#include <gtest/gtest.h>

#include "controller/cluster/kube/times.h"

namespace paceline::dashboard {
namespace {

using kube::Json;

const WallTime kLookedAt = *kube::parse_time("2026-01-01T00:00:00Z");

Json decisions(const char* object) {
  return next_steps_json(Json::parse(object), kLookedAt)["decisions"];
}

TEST(NextStepsTest, EndedAndSuspendedJobsHaveOne) {
  EXPECT_EQ(decisions(R"({"status": {"phase": "Succeeded"}})").size(), 1U);
  EXPECT_EQ(
      decisions(R"({"spec": {"runPolicy": {"suspend": true}}, "status": {"phase": "Suspended"}})").size(),
      1U);
}

TEST(NextStepsTest, PausesBeforeRestartsAreCounted) {
  const Json next = decisions(R"({"status": {"phase": "Restarting", "restarts": {"inARow": 2,
      "notBefore": "2026-01-01T00:00:08Z",
      "replacements": [{"role": "ps", "index": 1, "notBefore": "2026-01-01T00:00:03Z"},
                       {"role": "ps", "index": 0, "notBefore": "2025-01-01T00:00:00Z"}]}}})");
  ASSERT_EQ(next.size(), 3U);
  EXPECT_EQ(next[0]["in"], 8.0);
  EXPECT_EQ(next[1]["in"], 3.0);
  EXPECT_TRUE(next[2]["in"].is_null());
}

TEST(NextStepsTest, SlowMembersComeFirst) {
  const Json next = decisions(R"({"status": {"phase": "Running",
      "stragglers": [{"role": "worker", "index": 2, "action": "Replace", "why": "the budget allows it"},
                     {"kind": "AllSlow", "action": "Report"}]}})");
  EXPECT_EQ(next.size(), 3U);
}

}  // namespace
}  // namespace paceline::dashboard
