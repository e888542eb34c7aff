#include "controller/reconcile/progress.h"

#include <gtest/gtest.h>

#include <functional>

#include "controller/plan/rules.h"

namespace paceline::reconcile {
namespace {

using Change = std::function<void(api::Status&)>;
struct Case {
  const char* what;
  Change change;
  bool starting, running;  // whether it is progress then
};

api::Status status_of(api::Phase phase) {
  api::Status status;
  status.phase = phase;
  status.members = {{.role = Role::kChief, .pod = "j-chief-0-0", .phase = "Pending"},
                    {.role = Role::kWorker, .pod = "j-worker-0-0", .phase = "Running"}};
  status.replica_statuses = {{.role = Role::kWorker, .active = 1}};
  return status;
}

TEST(ProgressTest, WhatMayWaitAndWhatIsToldAtOnce) {
  const Case kCases[] = {
      {"nothing", [](api::Status&) {}, true, true},
      {"a step", [](api::Status& s) { s.progress.step = 7; }, true, true},
      {"a member's step", [](api::Status& s) { s.members[0].step = 7; }, true, true},
      {"how a member's GPU is",
       [](api::Status& s) { s.members[0].telemetry.gpu = GpuTelemetry{.utilization = 0.5}; }, true, true},
      {"a member runs", [](api::Status& s) { s.members[0].phase = "Running"; }, true, true},
      {"a member appears", [](api::Status& s) { s.members.push_back({.pod = "j-worker-1-0"}); }, true, false},
      {"a member has a node", [](api::Status& s) { s.members[0].host = "node-1"; }, true, false},
      {"a pod takes another's place", [](api::Status& s) { s.members[0].pod = "j-chief-0-1"; }, true, false},
      {"counts", [](api::Status& s) { s.replica_statuses[0].ready = 1; }, true, false},
      {"a checkpoint", [](api::Status& s) { s.last_checkpoint = "/c/1"; }, false, true},
      {"a member has ended well", [](api::Status& s) { s.members[0].phase = "Succeeded"; }, false, false},
      {"its work is done", [](api::Status& s) { s.members[0].phase = plan::kFinishedPhase; }, false, false},
      {"a member has failed",
       [](api::Status& s) {
         s.members[1].phase = "Failed";
         s.replica_statuses[0].failed = 1;
       },
       false, false},
      {"one that has failed appears",
       [](api::Status& s) { s.members.push_back({.pod = "j-worker-1-0", .phase = "Failed"}); }, false, false},
      {"a message", [](api::Status& s) { s.message = "no node has room"; }, false, false},
      {"a restart", [](api::Status& s) { ++s.restarts.attempt; }, false, false},
      {"a condition", [](api::Status& s) { s.conditions.push_back({.type = "Degraded"}); }, false, false},
      {"a member is lost", [](api::Status& s) { s.members[1].phase = plan::kLostPhase; }, false, true},
      {"it runs", [](api::Status& s) { s.phase = api::Phase::kRunning; }, false, true},
      {"it starts", [](api::Status& s) { s.phase = api::Phase::kStarting; }, true, false},
      {"the phase", [](api::Status& s) { s.phase = api::Phase::kRestarting; }, false, false},
  };
  for (const Case& each : kCases) {
    for (const bool starting : {true, false}) {
      const api::Status before = status_of(starting ? api::Phase::kStarting : api::Phase::kRunning);
      api::Status after = before;
      each.change(after);
      EXPECT_EQ(same_but_for_progress(before, after), starting ? each.starting : each.running)
          << each.what << (starting ? " while it starts" : " while it runs");
    }
  }
}

}  // namespace
}  // namespace paceline::reconcile
