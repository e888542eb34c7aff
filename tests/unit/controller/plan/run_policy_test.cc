// Suspension, resizing, who manages a job, and clean-up, as stories in the model cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/plan/passes.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using api::Phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- suspend, resize

TEST(SuspendTest, ThePodsLeaveAndANewAttemptComesBack) {
  Observed world = make_running_world(1, 2);
  world.job.spec.run_policy.active_deadline_seconds = 3600;
  world.job.spec.run_policy.suspend = true;
  Plan made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kSuspended);
  EXPECT_THAT(true_conditions(made.status), ElementsAre("Created", "Suspended"));
  EXPECT_EQ(made.status.start_time, std::nullopt);
  ASSERT_THAT(actions_of<DeletePod>(made), SizeIs(3));
  EXPECT_EQ(actions_of<DeletePod>(made)[0].grace, world.limits.save_grace) << "the chief saves";
  EXPECT_EQ(actions_of<DeletePod>(made)[1].grace, world.limits.stop_grace);
  EXPECT_EQ(made.status.replica_statuses[1].active, 2);
  settle(world);
  EXPECT_THAT(world.pods, IsEmpty());
  EXPECT_EQ(world.job.status.replica_statuses[1].active, 0);
  world.now += 2h;
  EXPECT_THAT(plan(world).actions, IsEmpty()) << "the deadline's clock stands";
  world.job.spec.run_policy.suspend = false;
  made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kStarting);
  EXPECT_EQ(made.status.start_time, world.now) << "the deadline counts anew";
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_THAT(names(world), ElementsAre("fashion-chief-0-1", "fashion-worker-0-1", "fashion-worker-1-1"));
  EXPECT_EQ(world.job.status.restarts.total, 0) << "a resumption is no restart";
  EXPECT_FALSE(condition(world.job.status, "Suspended").status);
}

TEST(SuspendTest, AJobMayBeginSuspended) {
  Observed world = make_world(0, 2);
  world.job.spec.run_policy.suspend = true;
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kSuspended);
  EXPECT_THAT(world.pods, IsEmpty());
  EXPECT_EQ(world.job.status.restarts.attempt, 0);
  world.job.spec.run_policy.suspend = false;
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_THAT(names(world), ElementsAre("fashion-worker-0-0", "fashion-worker-1-0"));
}

TEST(SuspendTest, NoNewPodWhileAnOldOneLives) {
  Observed world = make_running_world(0, 2);
  world.job.spec.run_policy.suspend = true;
  step(world);
  world.job.spec.run_policy.suspend = false;
  EXPECT_THAT(actions_of<CreatePod>(step(world)), IsEmpty()) << "resumed before they left";
  advance(world);
  EXPECT_THAT(actions_of<CreatePod>(step(world)), SizeIs(2));
}

TEST(SuspendTest, ATrainingThatIsOverEndsWell) {
  Observed world = make_running_world(0, 1);
  world.report->phase = ReportPhase::kFinished;
  finish(world, world.pods[0], 0);
  world.job.spec.run_policy.suspend = true;
  EXPECT_EQ(plan(world).status.phase, Phase::kSucceeded);
}

TEST(ResizeTest, TheRingStartsAgainInItsNewSize) {
  for (const int workers : {1, 4}) {
    Observed world = make_running_world(1, 2);
    world.job.spec.replica_specs.worker->replicas = workers;
    const Plan made = step(world);
    EXPECT_EQ(made.status.phase, Phase::kRestarting);
    EXPECT_EQ(made.status.reason, "Resized");
    EXPECT_THAT(made.status.message, HasSubstr("had 3 members and shall have"));
    ASSERT_THAT(actions_of<RecordEvent>(made), SizeIs(1));
    EXPECT_FALSE(actions_of<RecordEvent>(made)[0].event.warning) << "somebody asked for it";
    settle(world);
    EXPECT_EQ(world.job.status.phase, Phase::kRunning);
    EXPECT_THAT(world.pods, SizeIs(1 + workers));
    EXPECT_EQ(world.job.status.restarts.in_a_row, 0);
    EXPECT_EQ(world.job.status.restarts.total, 0) << "who asks for another size restarts nothing";
    EXPECT_THAT(world.job.status.restarts.by_cause,
                ElementsAre(api::RestartCount{Role::kWorker, api::RestartCause::kResized, 1}));
    EXPECT_EQ(plan(world).status.restarts, world.job.status.restarts);
  }
}

std::vector<std::string> listed(const api::Status& status) {
  std::vector<std::string> pods;
  for (const api::MemberStatus& each : status.members) pods.push_back(each.pod);
  return pods;
}

TEST(ResizeTest, WhoIsNoLongerWantedLeavesTheStatusWhenTheNextAttemptBegins) {
  Observed world = make_running_world(1, 3);
  world.job.spec.replica_specs.worker->replicas = 1;
  for (int i = 0; i < 2; ++i) step(world);
  EXPECT_THAT(listed(world.job.status), SizeIs(4)) << "they live yet";
  world.pods.clear();
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_THAT(listed(world.job.status), ElementsAre("fashion-chief-0-1", "fashion-worker-0-1"));
}

TEST(ResizeTest, AJobThatHasEndedKeepsItsMembersWhateverItsSizeShallBe) {
  Observed world = make_running_world(0, 3);
  world.report->phase = ReportPhase::kFinished;
  for (cluster::Pod& pod : world.pods) finish(world, pod, 0);
  EXPECT_EQ(step(world).status.phase, Phase::kSucceeded);
  world.job.spec.replica_specs.worker->replicas = 1;
  EXPECT_THAT(listed(plan(world).status), SizeIs(3));
  world.pods.clear();
  world.job.spec.replica_specs.worker->replicas = 3;
  EXPECT_THAT(listed(plan(world).status), SizeIs(3));
}

// ---- who manages the job, and its end

TEST(ManagedByTest, SomebodyElsesJobIsLeftAlone) {
  Observed world = make_world(0, 2);
  world.job.spec.run_policy.managed_by = "kueue.x-k8s.io/multikueue";
  world.deleted = true;
  const Plan made = plan(world);
  EXPECT_THAT(made.actions, IsEmpty());
  EXPECT_EQ(made.status, world.job.status);
  EXPECT_FALSE(made.done);
  EXPECT_EQ(made.requeue_after, std::nullopt);
  world.deleted = false;
  world.job.spec.run_policy.managed_by = std::string(api::kManager);
  EXPECT_THAT(actions_of<CreatePod>(plan(world)), SizeIs(2));
}

TEST(TtlTest, TheJobIsDeletedWhenItHasLainLongEnough) {
  Observed world = make_running_world(0, 1);
  world.job.spec.run_policy.ttl_seconds_after_finished = 60;
  world.report->phase = ReportPhase::kFinished;
  finish(world, world.pods[0], 0);
  EXPECT_EQ(step(world).status.phase, Phase::kSucceeded);
  world.now += 20s;
  EXPECT_EQ(plan(world).requeue_after, 40s);
  EXPECT_THAT(plan(world).actions, IsEmpty());
  world.now += 40s;
  const auto deletions = actions_of<DeleteJob>(plan(world));
  ASSERT_THAT(deletions, SizeIs(1));
  EXPECT_EQ(deletions[0].uid, "job-uid");
  EXPECT_EQ(deletions[0].name, "fashion");
}

// Of three pods, one of which still runs.
constexpr struct CleanUp {
  api::CleanPodPolicy policy;
  std::size_t deleted;
} kCleanUps[] = {
    {api::CleanPodPolicy::kRunning, 1}, {api::CleanPodPolicy::kAll, 3}, {api::CleanPodPolicy::kNone, 0}};

TEST(CleanPodPolicyTest, SaysWhatStays) {
  for (const CleanUp& c : kCleanUps) {
    Observed world = make_running_world(0, 3);
    world.job.spec.run_policy.clean_pod_policy = c.policy;
    finish(world, world.pods[0], 1, 10s);
    finish(world, world.pods[1], 0, 10s);
    const Plan made = step(world);
    EXPECT_EQ(made.status.phase, Phase::kFailed);
    EXPECT_THAT(actions_of<DeletePod>(made), SizeIs(c.deleted)) << api::name(c.policy);
    advance(world);
    EXPECT_TRUE(plan(world).done) << api::name(c.policy);
    EXPECT_THAT(plan(world).actions, IsEmpty());
  }
}

// What its trainer leaves running beside it would hold its node's room for good.
TEST(CleanPodPolicyTest, APodWhoseSidecarsRunOnStillRuns) {
  for (const CleanUp& c : kCleanUps) {
    Observed world = make_running_world(0, 3);
    world.job.spec.run_policy.clean_pod_policy = c.policy;
    world.report->phase = ReportPhase::kFinished;
    for (cluster::Pod& pod : world.pods) finish(world, pod, 0);
    world.pods[1].lingers = true;
    const Plan made = step(world);
    EXPECT_EQ(made.status.phase, Phase::kSucceeded) << "nobody waits for it";
    EXPECT_THAT(actions_of<DeletePod>(made), SizeIs(c.deleted)) << api::name(c.policy);
  }
}

TEST(SuspendTest, APodWhoseSidecarsRunOnGoesToo) {
  Observed world = make_running_world(0, 2);
  finish(world, world.pods[1], 0);
  world.pods[1].lingers = true;
  world.job.spec.run_policy.suspend = true;
  EXPECT_THAT(actions_of<DeletePod>(step(world)), SizeIs(2));
}

}  // namespace
}  // namespace paceline::plan
