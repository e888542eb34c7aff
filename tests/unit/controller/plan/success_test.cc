// When a job has succeeded, and what becomes of those that have not ended then.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/plan.h"
#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(PlanTest, SuccessWaitsForTheOthers) {
  Observed world = make_running_world(1, 2);
  world.report->phase = ReportPhase::kFinished;
  world.report->model_path = "/run/model";
  finish(world, pod_of(world, Role::kChief, 0), 0);
  Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kRunning);
  EXPECT_THAT(made.actions, IsEmpty());
  finish(world, pod_of(world, Role::kWorker, 0), 0);
  finish(world, pod_of(world, Role::kWorker, 1), 0);
  made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kSucceeded);
  EXPECT_EQ(made.status.model, "/run/model");
  EXPECT_EQ(made.status.completion_time, world.now);
  EXPECT_TRUE(made.done);
  EXPECT_EQ(made.requeue_after, std::nullopt);
}

TEST(PlanTest, ThoseThatStayAreEndedAfterTheGrace) {
  Observed world = make_running_world(1, 1);
  world.report->phase = ReportPhase::kFinished;
  finish(world, pod_of(world, Role::kChief, 0), 0);
  world.report->in_phase = world.limits.finish_grace;
  const Plan made = plan(world);
  ASSERT_THAT(actions_of<DeletePod>(made), SizeIs(1));
  EXPECT_EQ(actions_of<DeletePod>(made)[0].name, "fashion-worker-0-0");
  apply(made, world);
  advance(world);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kSucceeded);
  EXPECT_THAT(actions_of<CreatePod>(plan(world)), IsEmpty()) << "the deleted worker is not replaced";
}

// With all-reduce nobody but the evaluator is left then: its coordinator says when it has looked.
TEST(PlanTest, SuccessWaitsForTheEvaluatorsLastLook) {
  const auto ended_world = [] {
    api::TrainingJob job = make_job(1, 1);
    job.spec.replica_specs.evaluator = api::ReplicaSpec{1, {}, {}};
    Observed world = make_running_world(job);
    for (const Role role : {Role::kChief, Role::kWorker}) finish(world, pod_of(world, role, 0), 0);
    for (ReportedMember& member : world.report->members) member.finished = true;
    return world;
  };
  const auto end_of = [](const Observed& world) {
    const Plan made = plan(world);
    EXPECT_EQ(made.status.phase, api::Phase::kSucceeded);
    EXPECT_EQ(actions_of<DeletePod>(made).size(), world.pods.back().ended() ? 0U : 1U);
  };
  Observed world = ended_world();
  ASSERT_EQ(world.pods.back().spec.role, Role::kEvaluator);
  world.now += world.limits.finish_grace - 1ms;
  const Plan waits = plan(world);
  EXPECT_EQ(waits.status.phase, api::Phase::kRunning);
  EXPECT_THAT(actions_of<DeletePod>(waits), IsEmpty());
  ASSERT_TRUE(waits.requeue_after.has_value());
  EXPECT_LE(*waits.requeue_after, 1ms);
  world.report->phase = ReportPhase::kFinished;
  end_of(world);

  Observed hung = ended_world();
  hung.now += hung.limits.finish_grace;
  end_of(hung);
  Observed dead = ended_world();
  kill(dead, pod_of(dead, Role::kEvaluator, 0), SIGKILL);
  end_of(dead);
  Observed pending = ended_world();
  pod_of(pending, Role::kEvaluator, 0).phase = cluster::PodPhase::kPending;
  end_of(pending);
  Observed alone = ended_world();
  alone.report.reset();
  end_of(alone);
}

TEST(PlanTest, ACrashAfterTheEndCostsAWarningOnly) {
  Observed world = make_running_world(1, 1);
  world.report->phase = ReportPhase::kFinished;
  finish(world, pod_of(world, Role::kChief, 0), 0);
  kill(world, pod_of(world, Role::kWorker, 0), SIGSEGV);
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kSucceeded);
  EXPECT_THAT(made.status.message, HasSubstr("afterwards worker-0 was killed by signal 11"));
}

TEST(PlanTest, ExitCodesOfZeroAreNoSuccessWithoutTraining) {
  Observed world = make_running_world(0, 2, 0);
  for (cluster::Pod& pod : world.pods) finish(world, pod, 0);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kRunning) << "the last report may be under way";
  EXPECT_FALSE(plan(world).done);
  world.now += world.limits.report_grace;
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kFailed);
  EXPECT_EQ(made.status.reason, "NotFinished");
}

// The controller was replaced, and the members ended before they found the new one.
TEST(PlanTest, ALeaderThatEndedWellWhileThereWasNoCoordinatorHasFinished) {
  Observed world = make_running_world(1, 1);
  world.report = JobReport{};
  finish(world, pod_of(world, Role::kChief, 0), 0);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kRunning) << "the worker is about to end";
  finish(world, pod_of(world, Role::kWorker, 0), 0);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kSucceeded);
  // The new coordinator may say that they died before they attached.
  world.report->phase = ReportPhase::kFailed;
  world.report->fault = api::Fault{.role = Role::kChief, .exit_code = 0};
  EXPECT_EQ(plan(world).status.phase, api::Phase::kSucceeded);
  world.report->generation.value = 1;
  EXPECT_NE(plan(world).status.phase, api::Phase::kSucceeded) << "it has seen them, and they did not finish";
}

TEST(PlanTest, AStrangeCommandThatEndsBeforeItAttachesHasNotFinished) {
  Observed world = make_world(0, 1);
  world.job.spec.replica_specs.worker->container = api::Container{.command = {"true"}};
  apply(plan(world), world);
  finish(world, world.pods.at(0), 0);
  world.now += world.limits.report_grace;
  EXPECT_EQ(plan(world).status.reason, "NotFinished");
  world.job.spec.replica_specs.worker->container.reset();
  EXPECT_EQ(plan(world).status.phase, api::Phase::kSucceeded);
}

TEST(PlanTest, PodsLeftOverOfAnEndedJobGo) {
  Observed world = make_running_world(0, 2);
  world.job.status.phase = api::Phase::kFailed;
  const Plan made = plan(world);
  EXPECT_THAT(actions_of<DeletePod>(made), SizeIs(2));
  EXPECT_EQ(made.status.phase, api::Phase::kFailed);
  EXPECT_THAT(actions_of<RecordEvent>(made), IsEmpty());
}

// Training goes on without it, so that nobody would notice.
}  // namespace
}  // namespace paceline::plan
