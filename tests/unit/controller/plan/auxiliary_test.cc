// Servers and evaluators of a job whose own program trains: beside the ring, as stories in the model cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process_end.h"
#include "tests/unit/controller/plan/passes.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using api::Phase;
using ::testing::ElementsAre;
using ::testing::SizeIs;

Observed with_ps_and_evaluator(api::RestartPolicy policy) {
  Observed world = make_world(0, 2);
  world.job.spec.training.reset();  // with it servers are members
  world.job.spec.replica_specs.ps = api::ReplicaSpec{1, policy, {}};
  world.job.spec.replica_specs.evaluator = api::ReplicaSpec{1, policy, {}};
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_THAT(world.pods, SizeIs(4));
  return world;
}

TEST(AuxiliaryTest, NeitherFailsTheJobNorKeepsItFromSucceeding) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kNever);
  finish(world, pod_of(world, Role::kEvaluator, 0), 1, 60s);
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_EQ(world.job.status.replica_statuses[2].failed, 1);
  world.report->phase = ReportPhase::kFinished;
  for (const int index : {0, 1}) finish(world, pod_of(world, Role::kWorker, index), 0);
  const Plan made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kSucceeded) << "the server still runs";
  ASSERT_THAT(actions_of<DeletePod>(made), SizeIs(1));
  EXPECT_EQ(actions_of<DeletePod>(made)[0].name, "fashion-ps-0-0");
  advance(world);
  EXPECT_TRUE(plan(world).done);
}

TEST(AuxiliaryTest, AServerIsReplacedAloneAsOftenAsItMayBe) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kOnFailure);
  world.job.spec.run_policy.backoff_limit = 2;
  for (int i = 0; i < 5; ++i) {
    finish(world, member(world, Role::kServer, 0), 1, 60s);
    settle(world);
    if (i >= 2) break;
    EXPECT_EQ(world.job.status.restarts.replacements[0].count, i + 1);
  }
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_EQ(world.job.status.restarts.attempt, 0) << "the ring was left alone";
  EXPECT_EQ(world.job.status.restarts.total, 2);
  EXPECT_THAT(world.job.status.restarts.replacements, ElementsAre(api::Replacement{Role::kServer, 0, 2}));
}

std::vector<std::string> told(const Plan& plan) {
  std::vector<std::string> told;
  for (const RecordEvent& each : actions_of<RecordEvent>(plan)) {
    EXPECT_TRUE(each.event.warning);
    told.push_back(each.event.reason + ": " + each.event.message);
  }
  return told;
}

TEST(AuxiliaryTest, APodThatIsNotStartedAgainIsToldOfOnce) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kNever);
  finish(world, pod_of(world, Role::kEvaluator, 0), 1, 60s);
  EXPECT_THAT(told(step(world)), ElementsAre(::testing::AllOf(
                                     ::testing::StartsWith("EvaluatorLost: evaluator-0"),
                                     ::testing::EndsWith("; it is not started again, and the job goes on"))));
  EXPECT_THAT(told(step(world)), ::testing::IsEmpty());
  finish(world, pod_of(world, Role::kServer, 0), 1, 60s);
  EXPECT_THAT(told(step(world)), ElementsAre(::testing::StartsWith("ServerLost: ps-0")));
  EXPECT_THAT(told(step(world)), ::testing::IsEmpty());
}

TEST(AuxiliaryTest, APodThatIsLostWithAMemberOfTheRingIsToldOf) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kNever);
  world.job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
  world.job.spec.run_policy.backoff_limit = 3;
  finish(world, pod_of(world, Role::kEvaluator, 0), 137, 60s);
  finish(world, pod_of(world, Role::kWorker, 1), 137, 60s);
  std::vector<std::string> all;
  for (int pass = 0; pass < 20; ++pass) {
    for (const RecordEvent& each : actions_of<RecordEvent>(step(world))) all.push_back(each.event.reason);
    world.now += 1s;
  }
  EXPECT_EQ(world.job.status.restarts.attempt, 1);
  EXPECT_EQ(std::ranges::count(all, "EvaluatorLost"), 1) << ::testing::PrintToString(all);
}

TEST(AuxiliaryTest, AFinishedPodIsNotLost) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kNever);
  finish(world, pod_of(world, Role::kEvaluator, 0), 0, 60s);
  settle(world);
  pod_of(world, Role::kEvaluator, 0).phase = cluster::PodPhase::kFailed;  // a sidecar's end came after it
  for (int pass = 0; pass < 3; ++pass) EXPECT_THAT(told(step(world)), ::testing::IsEmpty());
}

TEST(AuxiliaryTest, APodThatHasEndedWellIsNotStartedAgain) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kNever);
  finish(world, pod_of(world, Role::kEvaluator, 0), 0, 60s);
  EXPECT_THAT(told(step(world)), ::testing::IsEmpty());
}

TEST(AuxiliaryTest, EachReplacementIsToldOf) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kOnFailure);
  world.job.spec.run_policy.backoff_limit = 1;
  finish(world, member(world, Role::kEvaluator, 0), 1, 60s);
  EXPECT_THAT(told(step(world)),
              ElementsAre(::testing::AllOf(::testing::StartsWith("EvaluatorReplaced: evaluator-0"),
                                           ::testing::EndsWith("; it is started again"))));
  settle(world);
  finish(world, member(world, Role::kEvaluator, 0), 1, 60s);
  EXPECT_THAT(told(step(world)), ElementsAre(::testing::StartsWith("EvaluatorLost: evaluator-0")));
}

// Its sidecars, or a finalizer, keep the pod: what is known of its end comes first.
TEST(AuxiliaryTest, APodThatFailedBeforeItWasDeletedHasFailed) {
  for (const api::RestartPolicy policy : {api::RestartPolicy::kNever, api::RestartPolicy::kOnFailure}) {
    const bool never = policy == api::RestartPolicy::kNever;
    Observed world = with_ps_and_evaluator(policy);
    cluster::Pod& pod = pod_of(world, Role::kEvaluator, 0);
    finish(world, pod, 1, 60s);
    pod.deleting = pod.ended_first = true;
    EXPECT_THAT(told(step(world)),
                ElementsAre(::testing::StartsWith(never ? "EvaluatorLost: evaluator-0"
                                                        : "EvaluatorReplaced: evaluator-0")));
    EXPECT_EQ(world.job.status.restarts.total, never ? 0 : 1);
    settle(world);  // it is gone by now
    EXPECT_EQ(std::ranges::count(names(world), "fashion-evaluator-0-0"), 0);
    EXPECT_EQ(std::ranges::count(names(world), "fashion-evaluator-0-1"), never ? 0 : 1);
    EXPECT_EQ(world.job.status.replica_statuses[2].failed, never ? 1 : 0);
  }
}

TEST(AuxiliaryTest, AFailureThatWasToldStandsWhoeverDeletesThePodThen) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kNever);
  finish(world, pod_of(world, Role::kEvaluator, 0), 1, 60s);
  EXPECT_THAT(told(step(world)), SizeIs(1));
  pod_of(world, Role::kEvaluator, 0).deleting = true;  // no clock says what came first
  EXPECT_THAT(told(step(world)), ::testing::IsEmpty());
  settle(world);
  EXPECT_THAT(names(world), ::testing::Not(::testing::Contains("fashion-evaluator-0-0")));
}

TEST(AuxiliaryTest, APodThatIsDeletedWhileItRunsComesBackAndIsNotCounted) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kNever);
  cluster::Pod& pod = pod_of(world, Role::kEvaluator, 0);
  pod.deleting = true;
  EXPECT_THAT(told(step(world)), ::testing::IsEmpty());
  finish(world, pod_of(world, Role::kEvaluator, 0), 143);  // as it was told to
  EXPECT_THAT(told(step(world)), ::testing::IsEmpty());
  settle(world);
  EXPECT_EQ(pod_of(world, Role::kEvaluator, 0).phase, cluster::PodPhase::kRunning);
  EXPECT_EQ(world.job.status.restarts.total, 0);
}

TEST(AuxiliaryTest, AfterAResumptionNoNameIsUsedAgain) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kOnFailure);
  finish(world, pod_of(world, Role::kServer, 0), 137, 60s);
  settle(world);
  world.job.spec.run_policy.suspend = true;
  settle(world);
  world.job.spec.run_policy.suspend = false;
  settle(world);
  std::vector<std::string> live;
  for (const cluster::Pod& pod : world.pods) {
    if (!pod.ended()) live.push_back(pod.spec.name);
  }
  EXPECT_THAT(live, ::testing::UnorderedElementsAre("fashion-worker-0-1", "fashion-worker-1-1",
                                                    "fashion-ps-0-2", "fashion-evaluator-0-1"));
}

// A worker that was asked to stop has left, and another one may be saving for minutes before it says so.
TEST(AuxiliaryTest, AnEvaluatorIsReplacedWhileAFailureIsWaitedFor) {
  Observed world = make_running_world(make_job_with_servers(3, 1, 1));
  world.job.spec.replica_specs.evaluator->restart_policy = api::RestartPolicy::kOnFailure;
  finish(world, pod_of(world, Role::kWorker, 1), kExitEnded);
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.spec.name == "fashion-worker-2-0"; });
  const Plan waits = step(world);
  EXPECT_EQ(waits.requeue_after, world.limits.refresh);
  EXPECT_EQ(waits.status.phase, Phase::kRunning);
  finish(world, pod_of(world, Role::kEvaluator, 0), 1);
  EXPECT_EQ(step(world).status.restarts.total, 1);
  settle(world);
  EXPECT_THAT(names(world), ::testing::Contains("fashion-evaluator-0-1"));
  EXPECT_THAT(names(world), ::testing::Not(::testing::Contains("fashion-worker-2-0"))) << "the ring waits";
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_EQ(world.job.status.restarts.attempt, 0);
  world.now += world.limits.save_grace;
  EXPECT_EQ(plan(world).status.phase, Phase::kFailed);
}

}  // namespace
}  // namespace paceline::plan
