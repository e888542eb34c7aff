// Checkpoints that lie in a pod go with it, and the status says so.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/explain.h"
#include "tests/unit/controller/plan/passes.h"

namespace paceline::plan {
namespace {

using api::Phase;

constexpr char kSaved[] = "/paceline/checkpoints/step-000000100";
constexpr char kLost[] =
    "; its checkpoints go with its pods: 120 steps are lost, and training begins anew at step 0";

int warnings(const Plan& made) {
  return static_cast<int>(std::ranges::count_if(actions_of<RecordEvent>(made), [](const RecordEvent& record) {
    return record.event.warning && record.event.reason == "CheckpointsNotKept";
  }));
}

class KeptCheckpointsTest : public ::testing::TestWithParam<bool> {
 protected:
  // A running job that has saved one.
  Observed saved() {
    Observed world = restartable(0, 2);
    world.keeps_checkpoints = GetParam();
    world.report->checkpoint_path = kSaved;
    step(world);
    EXPECT_EQ(world.job.status.last_checkpoint, kSaved);
    EXPECT_EQ(world.job.status.progress.step, 120);
    return world;
  }
  void expect_told(const api::Status& status) {
    EXPECT_EQ(status.last_checkpoint, GetParam() ? kSaved : "");
    EXPECT_EQ(status.progress.step, GetParam() ? 120 : 0);
  }
};

TEST_P(KeptCheckpointsTest, ARestartSaysWhetherItBeginsAnew) {
  Observed world = saved();
  const JobReport last = *world.report;
  let_die(world, Role::kWorker, 1);
  const Plan made = step(world);
  ASSERT_EQ(made.status.phase, Phase::kRestarting);
  EXPECT_EQ(made.status.message.find(kLost) == std::string::npos, GetParam()) << made.status.message;
  expect_told(made.status);
  // What its members say as they leave makes them no safer.
  advance(world);
  world.report = last;
  expect_told(step(world).status);
}

TEST_P(KeptCheckpointsTest, ASuspensionSaysSoToo) {
  Observed world = saved();
  world.job.spec.run_policy.suspend = true;
  const Plan made = step(world);
  ASSERT_EQ(made.status.phase, Phase::kSuspended);
  EXPECT_EQ(made.status.message.find(kLost) == std::string::npos, GetParam()) << made.status.message;
  expect_told(made.status);
}

TEST_P(KeptCheckpointsTest, AFailedJobHasTheOnesThatAreKept) {
  Observed world = saved();
  for (auto* replica : {&world.job.spec.replica_specs.chief, &world.job.spec.replica_specs.worker}) {
    if (*replica) (*replica)->restart_policy = api::RestartPolicy::kNever;
  }
  let_die(world, Role::kWorker, 1);
  const Plan made = step(world);
  ASSERT_EQ(made.status.phase, Phase::kFailed);
  EXPECT_EQ(made.status.last_checkpoint, GetParam() ? kSaved : "");
  EXPECT_EQ(made.status.progress.step, 120) << "so far it came";
}

TEST_P(KeptCheckpointsTest, TheBeginningWarnsOnce) {
  Observed world = make_world(1, 1);
  world.keeps_checkpoints = GetParam();
  EXPECT_EQ(warnings(step(world)), GetParam() ? 0 : 1);
  EXPECT_EQ(warnings(step(world)), 0);
}

TEST_P(KeptCheckpointsTest, WhatThisAttemptSavesIsToldWhileItTrains) {
  Observed world = saved();
  EXPECT_EQ(step(world).status.last_checkpoint, kSaved);
}

INSTANTIATE_TEST_SUITE_P(Kept, KeptCheckpointsTest, ::testing::Bool());

}  // namespace
}  // namespace paceline::plan
