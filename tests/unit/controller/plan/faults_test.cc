#include "controller/plan/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process_end.h"
#include "controller/plan/plan.h"
#include "controller/plan/restart.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using api::RestartCause;
using api::RestartPolicy;

TEST(FaultsTest, AnEndWithCode0IsNoFailure) {
  Observed world = make_running_world(1, 2);
  finish(world, pod_of(world, Role::kWorker, 0), 0);
  EXPECT_FALSE(fault_by_pods(world).has_value());
}

// The others leave at once, with the code of those that were told to; the chief saves first.
TEST(FaultsTest, AMemberThatFollowsAnotherOneIsNotAtFaultBeforeThatHasSpoken) {
  Observed world = make_running_world(1, 2);
  finish(world, pod_of(world, Role::kWorker, 0), kExitEnded, 60s);
  finish(world, pod_of(world, Role::kWorker, 1), kExitEnded, 59s);
  const Plan waits = plan(world);
  EXPECT_EQ(waits.status.phase, api::Phase::kRunning);
  ASSERT_TRUE(waits.requeue_after);
  EXPECT_LE(*waits.requeue_after, world.limits.save_grace - 60s);
  Observed told = world;
  told.report->fault = api::Fault{.kind = api::FaultKind::kFailed,
                                  .role = Role::kChief,
                                  .evidence = {{api::ObservationKind::kStopped, "asked to stop"}}};
  told.report->fault_age = 2s;
  EXPECT_EQ(plan(told).status.fault->role, Role::kChief);
  world.now += world.limits.save_grace;
  ASSERT_TRUE(plan(world).status.fault) << "not for ever";
  EXPECT_EQ(plan(world).status.fault->pod, "fashion-worker-0-0");
}

TEST(FaultsTest, AFaultHasThePodThePidAndTheLastKnownStep) {
  Observed world = make_running_world(1, 2);
  kill(world, pod_of(world, Role::kWorker, 1), SIGKILL);
  finish(world, pod_of(world, Role::kChief, 0), 3);
  const auto fault = fault_by_pods(world);
  EXPECT_EQ(fault->pod, "fashion-worker-1-0");
  EXPECT_EQ(fault->pid, 4001);
  EXPECT_EQ(fault->step, 120);
  EXPECT_EQ(fault->kind, api::FaultKind::kKilled);
  ASSERT_EQ(fault->victims.size(), 1u);
  EXPECT_EQ(fault->victims[0].exit_code, 3);
}

TEST(FaultsTest, PodsThatAreDeletedAreNotAtFault) {
  Observed world = make_running_world(0, 2);
  kill(world, pod_of(world, Role::kWorker, 1), SIGTERM);
  pod_of(world, Role::kWorker, 1).deleting = true;
  EXPECT_FALSE(fault_by_pods(world).has_value());
}

TEST(FaultsTest, ThePolicyDecidesByTheCause) {
  for (int i = 0; i <= static_cast<int>(RestartCause::kResized); ++i) {
    const auto cause = static_cast<RestartCause>(i);
    EXPECT_FALSE(may_restart(RestartPolicy::kNever, cause));
    EXPECT_TRUE(may_restart(RestartPolicy::kOnFailure, cause));
    EXPECT_TRUE(may_restart(RestartPolicy::kAlways, cause));
    using enum RestartCause;
    const bool permanent = cause == kExited || cause == kOutOfMemory || cause == kNotFinite ||
                           cause == kDataUnreadable || cause == kNotStarted || cause == kDeadlineExceeded;
    EXPECT_EQ(may_restart(RestartPolicy::kExitCode, cause), !permanent) << api::name(cause);
  }
}

}  // namespace
}  // namespace paceline::plan
