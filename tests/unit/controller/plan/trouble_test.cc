// What keeps pods from running, and what the conditions say, in the model cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/plan/trouble.h"
#include "tests/unit/controller/plan/passes.h"

namespace paceline::plan {
namespace {

using api::Phase;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(TroubleTest, TheClustersWordsAreShown) {
  Observed world = make_world(0, 2);
  world.limits.create_failures = 0;
  step(world);
  pod_of(world, Role::kWorker, 1).reason = "Unschedulable";
  pod_of(world, Role::kWorker, 1).message = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu";
  Plan made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kStarting);
  EXPECT_EQ(made.status.reason, "Unschedulable");
  EXPECT_THAT(made.status.message, HasSubstr("worker-1 (pod fashion-worker-1-0) does not start: 0/2 nodes"));
  EXPECT_EQ(condition(made.status, "Running").message, made.status.message);
  EXPECT_FALSE(condition(made.status, "Running").status);
  ASSERT_NE(pod_trouble(made.status), nullptr);
  EXPECT_EQ(*pod_trouble(made.status), condition(made.status, "Running"));
  EXPECT_THAT(actions_of<RecordEvent>(made), SizeIs(1));
  EXPECT_THAT(step(world).actions, IsEmpty()) << "once";
  pod_of(world, Role::kWorker, 1).reason = "ContainerCreating";
  made = step(world);
  EXPECT_EQ(made.status.reason, kCreatingPods);
  EXPECT_EQ(pod_trouble(made.status), nullptr);
  world.create_failure =
      CreateFailure{50, "fashion-worker-0-0", "exceeded quota: compute, requested: pods=1"};
  made = step(world);
  EXPECT_EQ(made.status.reason, kPodNotCreated);
  EXPECT_EQ(pod_trouble(made.status)->reason, kPodNotCreated);
  EXPECT_THAT(condition(made.status, "Running").message, HasSubstr("exceeded quota: compute"));
  world.create_failure.reset();
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_EQ(world.job.status.reason, "MembersTrain");
  EXPECT_EQ(pod_trouble(world.job.status), nullptr);
}

api::Status status_with(Phase phase, bool runs, const char* reason) {
  api::Status status;
  status.phase = phase;
  status.reason = reason;
  status.message = str_cat(reason, ", in a sentence");
  status.conditions = {{"Created", true, "Accepted", "the job is accepted"},
                       {"Running", runs, reason, status.message}};
  return status;
}

TEST(PodTroubleTest, StatusTellsItOfJobsThatGoOn) {
  struct Case {
    Phase phase;
    bool runs;
    const char* reason;
    bool trouble;
  };
  for (const auto& [phase, runs, reason, trouble] : {
           Case{Phase::kStarting, false, "Unschedulable", true},
           Case{Phase::kRestarting, false, "ImagePullBackOff", true},
           Case{Phase::kRunning, true, "Unschedulable", true},
           Case{Phase::kStarting, false, kCreatingPods, false},
           Case{Phase::kRunning, true, "MembersTrain", false},
           Case{Phase::kRunning, true, "PodsRun", false},
           Case{Phase::kRunning, false, "Unschedulable", false},
           Case{Phase::kFailed, false, kPodNotCreated, false},
           Case{Phase::kSuspended, false, "Suspended", false},
       })
    EXPECT_EQ(pod_trouble(status_with(phase, runs, reason)) != nullptr, trouble)
        << api::name(phase) << " " << reason;
  EXPECT_EQ(pod_trouble({}), nullptr);
}

TEST(PodTroubleTest, PhaseThatBeginsIsNone) {
  api::Status status = status_with(Phase::kRestarting, false, "MemberExited");
  status.conditions.push_back({"Restarting", true, status.reason, status.message});
  EXPECT_EQ(pod_trouble(status), nullptr);
  status.reason = "Unschedulable";
  EXPECT_EQ(pod_trouble(status), nullptr) << "condition Running is about something else";
}

TEST(PodAdviceTest, KnowsWhatKeepsPodsFromRunning) {
  for (const char* reason : {kPodNotCreated, "Unschedulable", "ImagePullBackOff", "CrashLoopBackOff"})
    EXPECT_NE(pod_advice(reason), "") << reason;
  for (const char* reason : {"", "MembersTrain", kCreatingPods}) EXPECT_EQ(pod_advice(reason), "") << reason;
}

TEST(ConditionsTest, CarryTheGenerationTheyAreAbout) {
  Observed world = make_world(0, 1);
  world.generation = SpecGeneration{7};
  settle(world);
  EXPECT_EQ(world.job.status.observed_generation.value, 7);
  for (const char* type : {"Created", "Running"})
    EXPECT_EQ(condition(world.job.status, type).observed_generation.value, 7) << type;
  world.generation = SpecGeneration{8};
  world.job.spec.run_policy.suspend = true;
  settle(world);
  EXPECT_EQ(world.job.status.observed_generation.value, 8);
  for (const char* type : {"Suspended", "Running"})
    EXPECT_EQ(condition(world.job.status, type).observed_generation.value, 8) << type;
  world.generation = SpecGeneration{9};
  world.job.spec.run_policy.suspend = false;
  settle(world);
  world.report->state = JobState::kFinished;
  finish(world, world.pods[0], 0);
  step(world);
  for (const char* type : {"Succeeded", "Suspended", "Running"})
    EXPECT_EQ(condition(world.job.status, type).observed_generation.value, 9) << type;
}

}  // namespace
}  // namespace paceline::plan
