#include "controller/plan/cause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using api::RestartCause;
using api::RestartPolicy;
using ::testing::UnorderedElementsAre;

struct Case {
  const char* reason;
  std::optional<int> exit_code, signal;
  bool deleting;
  RestartCause cause;
  bool by_exit_code;  // restarted with restartPolicy: ExitCode
};

class Cause : public ::testing::TestWithParam<Case> {};

TEST_P(Cause, OfAPodsEnd) {
  const Case& c = GetParam();
  Blame blame;
  cluster::Pod& pod = blame.pod.emplace();
  pod.phase = c.deleting ? cluster::PodPhase::kRunning : cluster::PodPhase::kFailed;
  pod.deleting = c.deleting;
  pod.reason = c.reason;
  pod.exit_code = blame.exit_code = c.exit_code;
  pod.signal = blame.signal = c.signal;
  blame.evicted = c.exit_code == kExitEnded;
  EXPECT_EQ(cause_of(blame), c.cause) << api::name(cause_of(blame));
  EXPECT_FALSE(may_restart(RestartPolicy::kNever, blame));
  EXPECT_TRUE(may_restart(RestartPolicy::kOnFailure, blame));
  EXPECT_TRUE(may_restart(RestartPolicy::kAlways, blame));
  EXPECT_EQ(may_restart(RestartPolicy::kExitCode, blame), c.by_exit_code);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Cause,
    ::testing::Values(Case{"Error", 1, {}, false, RestartCause::kExited, false},
                      Case{"Error", 127, {}, false, RestartCause::kExited, false},
                      Case{"Error", 128, {}, false, RestartCause::kKilled, true},
                      Case{"Error", 137, {}, false, RestartCause::kKilled, true},
                      Case{"Error", {}, 9, false, RestartCause::kKilled, true},
                      Case{"Error", 3, {}, false, RestartCause::kControllerLost, true},
                      Case{"OOMKilled", 137, {}, false, RestartCause::kOutOfMemory, true},
                      Case{"StartError", 127, {}, false, RestartCause::kNotStarted, false},
                      Case{"ContainerCannotRun", 128, {}, false, RestartCause::kNotStarted, false},
                      Case{"DeadlineExceeded", {}, {}, false, RestartCause::kDeadlineExceeded, false},
                      Case{"Evicted", {}, {}, false, RestartCause::kEvicted, true},
                      Case{"Evicted", 1, {}, false, RestartCause::kEvicted, true},
                      Case{"EvictionByEvictionAPI", {}, {}, true, RestartCause::kEvicted, true},
                      Case{"Preempting", {}, {}, false, RestartCause::kPreempted, true},
                      Case{"PreemptionByScheduler", {}, {}, true, RestartCause::kPreempted, true},
                      Case{"NodeLost", {}, {}, true, RestartCause::kNodeLost, true},
                      Case{"DeletionByTaintManager", {}, {}, true, RestartCause::kNodeLost, true},
                      Case{"DeletionByPodGC", {}, {}, false, RestartCause::kNodeLost, true},
                      Case{"Terminated", 137, {}, false, RestartCause::kNodeShutdown, true},
                      Case{"Shutdown", {}, {}, false, RestartCause::kNodeShutdown, true},
                      Case{"TerminationByKubelet", {}, {}, false, RestartCause::kNodeShutdown, true},
                      Case{"OutOfcpu", {}, {}, false, RestartCause::kRefusedByNode, true},
                      Case{"UnexpectedAdmissionError", {}, {}, false, RestartCause::kRefusedByNode, true},
                      Case{"", {}, {}, true, RestartCause::kDeleted, true}));

TEST(CauseTest, VerdictsOfTheCoordinator) {
  const auto cause = [](CulpritKind kind, std::optional<int> signal = {}) {
    Blame blame;
    blame.kind = kind;
    blame.signal = signal;
    EXPECT_EQ(may_restart(RestartPolicy::kExitCode, blame), kind != CulpritKind::kFailed);
    return cause_of(blame);
  };
  EXPECT_EQ(cause(CulpritKind::kMissing), RestartCause::kSilent);
  EXPECT_EQ(cause(CulpritKind::kFrozen), RestartCause::kSilent);
  EXPECT_EQ(cause(CulpritKind::kUnreachable), RestartCause::kSilent);
  EXPECT_EQ(cause(CulpritKind::kDiverged), RestartCause::kDiverged);
  EXPECT_EQ(cause(CulpritKind::kDead), RestartCause::kSilent);
  EXPECT_EQ(cause(CulpritKind::kDead, 11), RestartCause::kKilled);
  EXPECT_EQ(cause(CulpritKind::kFailed), RestartCause::kExited);
}

TEST(CauseTest, SilenceOfALostNodeIsTheNodes) {
  Blame blame;
  blame.kind = CulpritKind::kFrozen;
  blame.pod.emplace().reason = "NodeLost";
  EXPECT_EQ(cause_of(blame), RestartCause::kNodeLost);
}

TEST(CauseTest, ANodeThatIsNotReadyExcusesSilenceAlone) {
  Blame blame;
  blame.pod.emplace().node_not_ready = true;
  blame.pod->phase = cluster::PodPhase::kRunning;
  EXPECT_EQ(silenced_by(*blame.pod), RestartCause::kNodeLost);
  using enum CulpritKind;
  for (const CulpritKind kind : {kMissing, kDead, kFrozen, kUnreachable}) {
    blame.kind = kind;
    EXPECT_EQ(cause_of(blame), RestartCause::kNodeLost);
  }
  blame.kind = kDiverged;
  EXPECT_EQ(cause_of(blame), RestartCause::kDiverged);
  blame.kind = kFailed;
  EXPECT_EQ(cause_of(blame), RestartCause::kExited);
  blame.kind = kDead;
  blame.signal = 11;
  EXPECT_EQ(cause_of(blame), RestartCause::kKilled) << "its end was told";
}

TEST(CauseTest, WhatIsNotTheJobsFaultIsNotCharged) {
  std::set<std::string> charged, excused;
  for (int i = 0; i <= static_cast<int>(RestartCause::kResized); ++i) {
    const auto cause = static_cast<RestartCause>(i);
    (api::is_charged(cause) ? charged : excused).insert(api::name(cause));
  }
  EXPECT_THAT(charged, UnorderedElementsAre("Exited", "Killed", "OOMKilled", "NotStarted", "Silent",
                                            "Diverged", "DeadlineExceeded"));
  EXPECT_THAT(excused, UnorderedElementsAre("Evicted", "Preempted", "NodeLost", "NodeShutdown",
                                            "RefusedByNode", "Deleted", "ControllerLost", "Resized"));
}

}  // namespace
}  // namespace paceline::plan
