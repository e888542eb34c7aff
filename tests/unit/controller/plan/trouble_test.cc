// What keeps pods from running, and what the conditions say, in the model cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(actions_of<RecordEvent>(made), SizeIs(1));
  EXPECT_THAT(step(world).actions, IsEmpty()) << "once";
  pod_of(world, Role::kWorker, 1).reason = "ContainerCreating";
  EXPECT_EQ(step(world).status.reason, "CreatingPods");
  world.create_failure =
      CreateFailure{50, "fashion-worker-0-0", "exceeded quota: compute, requested: pods=1"};
  made = step(world);
  EXPECT_EQ(made.status.reason, "PodNotCreated");
  EXPECT_THAT(condition(made.status, "Running").message, HasSubstr("exceeded quota: compute"));
  world.create_failure.reset();
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_EQ(world.job.status.reason, "MembersTrain");
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
