#include "controller/dashboard/next_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/times.h"
#include "controller/plan/kubernetes_limits.h"
#include "controller/plan/restart_budget.h"
#include "controller/reconcile/what_if.h"

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
  ASSERT_EQ(next.size(), 2U);
  EXPECT_EQ(next[0]["in"], 8.0);
  EXPECT_EQ(next[1]["in"], 3.0);
}

// By spec.runPolicy, as the planner counts them: an eviction costs nothing, and inARow is of pauses alone.
TEST(NextStepsTest, RestartsLeftAreThePlanners) {
  const auto left = [](const char* run_policy, int failures) {
    Json job = Json::parse(R"({"metadata": {"name": "digits", "namespace": "a"},
        "spec": {"replicaSpecs": {"worker": {"replicas": 2, "template": {"spec": {
            "containers": [{"name": "trainer", "image": "i"}]}}}}},
        "status": {"phase": "Running", "restarts": {"inARow": 1, "byCause": [
            {"role": "worker", "cause": "Evicted", "count": 9}]}}})");
    job["spec"]["runPolicy"] = Json::parse(run_policy);
    Json& restarts = job["status"]["restarts"];
    restarts["byCause"].push_back({{"role", "worker"}, {"cause", "Exited"}, {"count", failures}});
    restarts["recent"] = Json::parse(R"([{"at": "2025-12-31T23:00:00Z", "count": 2},
                                         {"at": "2025-12-31T23:59:00Z", "count": 1}])");
    const Json next = next_steps_json(job, kLookedAt)["decisions"];
    EXPECT_EQ(next.size(), 2U) << "and what follows if a worker dies";
    return next.empty() ? "" : next.back()["text"].get<std::string>();
  };
  const auto ends_with = [](const plan::RestartBudget& budget) {
    return ::testing::EndsWith(": " + plan::text_of(budget));
  };
  EXPECT_THAT(left("{}", 6), ends_with({6, 6, {}}));
  EXPECT_THAT(left("{}", 2), ends_with({2, 6, {}}));
  EXPECT_THAT(left(R"({"backoffLimit": 8, "restartWindowSeconds": 600})", 3),
              ends_with({1, 8, std::chrono::minutes(10)}));
}

// Role and index of a finding about all members say nothing.
TEST(NextStepsTest, SlowMembersComeFirst) {
  const auto decided = [](int index) {
    Json job = Json::parse(R"({"status": {"phase": "Running",
        "stragglers": [{"role": "worker", "index": 2, "action": "Replace", "why": "the budget allows it"},
                       {"kind": "AllSlow", "role": "worker", "rank": -1, "action": "Report"}]}})");
    for (Json& each : job["status"]["stragglers"]) each["index"] = index;
    return next_steps_json(job, kLookedAt)["decisions"];
  };
  const Json first = decided(0), second = decided(2);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_NE(first[0], second[0]);
  EXPECT_EQ(first[1], second[1]);
}

// A job that trains, as the API server has it.
Json training_job(const char* run_policy, const char* phase) {
  Json job = Json::parse(R"({"metadata": {"name": "digits", "namespace": "a"},
      "spec": {"replicaSpecs": {"chief": {"restartPolicy": "Never"},
                                "worker": {"replicas": 2, "restartPolicy": "Never"}},
               "training": {"model": {"type": "mlp", "hidden": [8], "classes": 10},
                            "data": {"format": "csv", "train": {"inputs": "d.csv"}, "testFraction": 0.1},
                            "optimizer": {"type": "SGD", "learningRate": 0.1},
                            "globalBatchSize": 6, "steps": 9}}})");
  for (Json& role : job["spec"]["replicaSpecs"])
    role["template"] = Json::parse(R"({"spec": {"containers": [{"name": "trainer", "image": "i"}]}})");
  job["spec"]["runPolicy"] = Json::parse(run_policy);
  job["status"]["phase"] = phase;
  return job;
}

// A job that starts nobody again ends with the first death, as `paceline explain` has it.
TEST(NextStepsTest, DeathsOfEachRoleHaveAnAnswer) {
  const Json object = training_job("{}", "Running");
  const Json next = next_steps_json(object, kLookedAt)["decisions"];
  api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  ASSERT_TRUE(parsed.job.has_value());
  parsed.job->status.phase = api::Phase::kRunning;
  const auto answers = reconcile::if_a_member_dies(*parsed.job, plan::kubernetes_limits(), kLookedAt);
  ASSERT_EQ(answers.size(), 2U);
  ASSERT_EQ(next.size(), 3U) << next;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].then, reconcile::WhatIf::Then::kJobFails);
    EXPECT_THAT(next[i]["text"].get<std::string>(), ::testing::EndsWith(reconcile::text_of(answers[i])));
  }
}

TEST(NextStepsTest, SuspendedJobsWithoutAVolumeBeginAnew) {
  Json job = training_job(R"({"suspend": true})", "Suspended");
  const Json anew = next_steps_json(job, kLookedAt)["decisions"];
  job["status"]["run"] = {{"phase", "Suspended"}};
  EXPECT_NE(anew, next_steps_json(job, kLookedAt)["decisions"]) << "those of a run lie on this machine";
}

}  // namespace
}  // namespace paceline::dashboard
