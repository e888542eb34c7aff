// A member that fell silent: whether its node has died, or its process hangs, shows later.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "controller/plan/explain.h"
#include "controller/plan/restart.h"
#include "tests/unit/controller/plan/passes.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using api::Phase;
using api::RestartCause;
using api::RestartCount;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kSilent[] = "fashion-worker-1-0";

// Worker 1's heartbeats have stopped, and its pod runs, as far as the cluster knows.
Observed with_a_silent_worker(std::int64_t backoff_limit) {
  Observed world = restartable(0, 2);
  world.job.spec.run_policy.backoff_limit = backoff_limit;
  world.report->fault = api::Fault{.kind = api::FaultKind::kFrozen,
                                   .role = Role::kWorker,
                                   .index = 1,
                                   .pod = kSilent,
                                   .step = 120,
                                   .evidence = {{api::ObservationKind::kSilent, "5s"}}};
  world.report->fault_age = 1s;
  return world;
}

cluster::Pod& silent_pod(Observed& world) {
  return *std::ranges::find_if(world.pods, [](const cluster::Pod& pod) { return pod.spec.name == kSilent; });
}

// Its kubelet does not do what it is told: of the pods that are deleted, this one stays.
void advance_but_for_the_silent(Observed& world) {
  const cluster::Pod stuck = silent_pod(world);
  advance(world);
  world.pods.push_back(stuck);
}

// The restart is decided, and the others are gone.
Observed restarted(std::int64_t backoff_limit) {
  Observed world = with_a_silent_worker(backoff_limit);
  const Plan made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kRestarting) << explain(made);
  EXPECT_EQ(made.status.reason, "Silent");
  EXPECT_THAT(actions_of<DeletePod>(made), SizeIs(2));
  EXPECT_EQ(made.status.fault->provisional_since, world.now);
  EXPECT_THAT(made.status.restarts.by_cause,
              ElementsAre(RestartCount{Role::kWorker, RestartCause::kSilent, 1}));
  advance_but_for_the_silent(world);
  EXPECT_THAT(names(world), ElementsAre(kSilent));
  return world;
}

struct Finding {
  RestartCause cause;
  std::function<void(cluster::Pod&)> happens;
};

const Finding kFindings[] = {
    {RestartCause::kNodeLost, [](cluster::Pod& pod) { pod.node_not_ready = true; }},
    {RestartCause::kNodeLost, [](cluster::Pod& pod) { pod.reason = "DeletionByTaintManager"; }},
    {RestartCause::kPreempted, [](cluster::Pod& pod) { pod.reason = "PreemptionByScheduler"; }},
    {RestartCause::kNodeLost,
     [](cluster::Pod& pod) {
       pod.phase = cluster::PodPhase::kFailed;
       pod.reason = "NodeLost";
     }},
    {RestartCause::kEvicted,
     [](cluster::Pod& pod) {
       pod.phase = cluster::PodPhase::kFailed;
       pod.reason = "Evicted";
       pod.signal = 9;
     }},
    {RestartCause::kNodeShutdown,
     [](cluster::Pod& pod) {
       pod.phase = cluster::PodPhase::kFailed;
       pod.reason = "Terminated";
     }},
};

TEST(ProvisionalTest, TheRestartIsNotChargedOnceItsPodShowsThatTheMemberWasNotAtFault) {
  for (const auto& [cause, happens] : kFindings) {
    SCOPED_TRACE(api::name(cause));
    Observed world = restarted(6);
    happens(silent_pod(world));
    const Plan made = step(world);
    EXPECT_EQ(made.status.phase, Phase::kRestarting);
    EXPECT_EQ(made.status.reason, api::name(cause));
    EXPECT_EQ(made.status.fault->cause, cause);
    EXPECT_THAT(made.status.restarts.by_cause, ElementsAre(RestartCount{Role::kWorker, cause, 1}));
    EXPECT_EQ(made.status.restarts.total, 1);
    EXPECT_EQ(made.status.restarts.attempt, 1);
    EXPECT_FALSE(is_provisional(made.status));
    EXPECT_THAT(actions_of<RecordEvent>(made), SizeIs(1));
    EXPECT_THAT(actions_of<RecordEvent>(step(world)), IsEmpty()) << "once";
    EXPECT_EQ(world.job.status.restarts.by_cause[0].count, 1);
  }
}

TEST(ProvisionalTest, ASilenceBeforeIsNotCountedAnew) {
  Observed world = with_a_silent_worker(6);
  count_restart(world.job.status.restarts, Role::kWorker, RestartCause::kSilent);
  step(world);
  silent_pod(world).node_not_ready = true;
  EXPECT_THAT(step(world).status.restarts.by_cause,
              ElementsAre(RestartCount{Role::kWorker, RestartCause::kSilent, 1},
                          RestartCount{Role::kWorker, RestartCause::kNodeLost, 1}));
}

TEST(ProvisionalTest, ANodeThatIsKnownToBeLostWhenTheMemberIsMissedIsNamedAtOnce) {
  using enum api::FaultKind;
  for (const api::FaultKind kind : {kDead, kFrozen, kUnreachable, kMissing}) {
    Observed world = with_a_silent_worker(0);
    world.report->fault->kind = kind;
    silent_pod(world).node_not_ready = true;
    const Plan made = plan(world);
    EXPECT_EQ(made.status.reason, "NodeLost") << explain(made);
    EXPECT_EQ(made.status.fault->evidence.back().kind, api::ObservationKind::kNodeNotReady);
    EXPECT_FALSE(is_provisional(made.status));
  }
}

TEST(ProvisionalTest, AProcessThatHangsIsCharged) {
  Observed world = restarted(1);
  advance(world);  // its kubelet has killed it
  const Plan made = step(world);
  EXPECT_THAT(actions_of<CreatePod>(made), SizeIs(2));
  EXPECT_FALSE(is_provisional(made.status));
  EXPECT_THAT(made.status.restarts.by_cause,
              ElementsAre(RestartCount{Role::kWorker, RestartCause::kSilent, 1}));
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  let_die(world, Role::kWorker, 0);
  EXPECT_EQ(plan(world).status.reason, "BackoffLimitExceeded");
}

TEST(ProvisionalTest, PodThatIsGoneTellsOfNoLostNode) {
  Observed world = restarted(6);
  world.pods.clear();
  world.job.status.restarts.not_before = world.now + 1s;
  EXPECT_FALSE(is_provisional(plan(world).status));
  world.job.spec.run_policy.backoff_limit = 0;
  EXPECT_EQ(plan(world).status.reason, "BackoffLimitExceeded");
}

// The last restart that may be charged is used up, or there is none.
TEST(ProvisionalTest, TheJobGoesOnAtItsLimitWhereTheNodeWasLost) {
  Observed world = restarted(0);
  EXPECT_THAT(world.job.status.message,
              EndsWith(", and start once more (attempt 1) only if its node is lost"));
  world.now += 45s;
  Plan made = step(world);
  EXPECT_THAT(made.actions, IsEmpty());
  EXPECT_EQ(made.requeue_after, world.limits.refresh) << "its coordinator's report";
  EXPECT_EQ(made.status.phase, Phase::kRestarting);
  silent_pod(world).node_not_ready = true;
  made = step(world);
  EXPECT_EQ(made.status.reason, "NodeLost");
  EXPECT_THAT(actions_of<CreatePod>(made), IsEmpty()) << "it may run yet, and write";
  world.now += 400s;
  EXPECT_EQ(step(world).status.phase, Phase::kRestarting) << "nothing fails any more";
  silent_pod(world).reason = "DeletionByTaintManager";
  EXPECT_THAT(actions_of<CreatePod>(step(world)), SizeIs(2));
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.spec.name == kSilent; });
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  let_die(world, Role::kWorker, 0);
  EXPECT_EQ(plan(world).status.reason, "BackoffLimitExceeded") << "its own failures are charged as ever";
}

TEST(ProvisionalTest, TheJobFailsAtItsLimitWhereItsPodEnds) {
  const Observed silent = restarted(0);
  const auto fails = [&](const std::function<void(Observed&)>& happens) {
    Observed world = silent;
    happens(world);
    const Plan made = step(world);
    EXPECT_EQ(made.status.phase, Phase::kFailed) << explain(made);
    EXPECT_EQ(made.status.reason, "BackoffLimitExceeded");
    EXPECT_EQ(made.status.fault->kind, api::FaultKind::kFrozen);
    EXPECT_THAT(made.status.restarts.by_cause,
                ElementsAre(RestartCount{Role::kWorker, RestartCause::kSilent, 1}));
    EXPECT_FALSE(is_provisional(made.status));
    return made.status.message;
  };
  EXPECT_THAT(fails([](Observed& world) { world.pods.clear(); }),
              EndsWith("; its node is not lost: the pod is gone"));
  EXPECT_THAT(fails([](Observed& world) { kill(world, silent_pod(world), SIGKILL); }),
              EndsWith("; its node is not lost: the pod was killed by signal 9 (SIGKILL)"));
  EXPECT_THAT(fails([](Observed& world) { world.now += world.limits.settle_time; }),
              EndsWith("; its node has not shown to be lost within 6 min"));
}

TEST(ProvisionalTest, ItIsNotWaitedForLongerThanItsTime) {
  Observed world = restarted(0);
  world.report.reset();
  EXPECT_EQ(plan(world).requeue_after, world.limits.settle_time);
  world.now += world.limits.settle_time - 1s;
  EXPECT_EQ(plan(world).status.phase, Phase::kRestarting);
  EXPECT_EQ(plan(world).requeue_after, 1s);
  world.now += 1s;
  EXPECT_EQ(plan(world).status.phase, Phase::kFailed);
}

TEST(ProvisionalTest, AHigherLimitIsReasonEnoughToGoOn) {
  Observed world = restarted(0);
  advance_but_for_the_silent(world);
  world.job.spec.run_policy.backoff_limit = 1;
  world.now += 1h;
  EXPECT_EQ(step(world).status.phase, Phase::kRestarting);
  advance(world);
  EXPECT_THAT(actions_of<CreatePod>(step(world)), SizeIs(2));
}

// The status alone holds all that must be known.
TEST(ProvisionalTest, AnotherControllerKnowsOfItToo) {
  const auto taken_over = [](std::int64_t backoff_limit) {
    Observed world = restarted(backoff_limit);
    Observed other = make_world(world.job);
    other.pods = world.pods;
    other.now = world.now + 30s;
    other.report->attempt = 1;
    return other;
  };
  for (const std::int64_t limit : {0, 6}) {
    Observed other = taken_over(limit);
    EXPECT_THAT(actions_of<CreatePod>(step(other)), IsEmpty());
    silent_pod(other).node_not_ready = true;
    EXPECT_THAT(step(other).status.restarts.by_cause,
                ElementsAre(RestartCount{Role::kWorker, RestartCause::kNodeLost, 1}));
  }
  Observed late = taken_over(0);
  late.now += late.limits.settle_time - 31s;
  EXPECT_EQ(plan(late).status.phase, Phase::kRestarting);
  late.now += 1s;
  EXPECT_EQ(plan(late).status.phase, Phase::kFailed) << "the time counts from the restart";
}

TEST(ProvisionalTest, OfASuspendedJobTooItIsSettled) {
  Observed world = restarted(0);
  world.job.spec.run_policy.suspend = true;
  EXPECT_EQ(step(world).status.phase, Phase::kSuspended);
  world.now += 1h;
  EXPECT_EQ(step(world).status.phase, Phase::kSuspended) << "nothing fails now";
  Observed hung = world;
  silent_pod(world).node_not_ready = true;
  EXPECT_THAT(step(world).status.restarts.by_cause,
              ElementsAre(RestartCount{Role::kWorker, RestartCause::kNodeLost, 1}));
  EXPECT_EQ(world.job.status.phase, Phase::kSuspended);
  hung.pods.clear();
  hung.job.spec.run_policy.suspend = false;
  const Plan made = step(hung);
  EXPECT_EQ(made.status.reason, "BackoffLimitExceeded");
  EXPECT_THAT(made.status.message,
              EndsWith("no heartbeat for 5s; the members were started again 0 times already "
                       "(spec.runPolicy.backoffLimit); its node is not lost: the pod is gone"));
}

}  // namespace
}  // namespace paceline::plan
