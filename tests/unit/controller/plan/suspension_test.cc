#include "controller/plan/suspension.h"

#include <gtest/gtest.h>

#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/passes.h"

namespace paceline::plan {
namespace {

using api::Phase;

// A running job that has saved step 100 is suspended at step 120, and its members have left.
Observed left(std::optional<LastSave> last_save, const std::string& checkpoint) {
  Observed world = make_running_world(1, 2);
  JobReport last = *world.report;
  last.checkpoint_path = checkpoint;
  last.last_save = std::move(last_save);
  world.job.spec.run_policy.suspend = true;
  step(world);
  EXPECT_EQ(world.job.status.phase, Phase::kSuspended);
  last.state = JobState::kStopped;
  world.report = last;
  return world;
}

constexpr char kStep100[] = "/c/step-000000100", kStep120[] = "/c/step-000000120";

TEST(SuspensionTest, AMemberThatCouldNotSaveCostsTheStepsSinceTheNewestCheckpoint) {
  const LastSave failed{120, "write /c/.saving: No space left on device"};
  Observed world = left(failed, kStep100);
  const Plan made = step(world);
  const Suspension expected{.step = 120, .saved = 100, .failed = failed};
  EXPECT_EQ(suspension_of(world, *world.report, made.status), expected);
  EXPECT_EQ(expected.behind(), 20);
  EXPECT_EQ(made.status.message, text_of(expected));
  const auto said = std::ranges::find(made.status.conditions, api::kCheckpointFailed, &api::Condition::type);
  ASSERT_NE(said, made.status.conditions.end());
  EXPECT_TRUE(said->status);
}

TEST(SuspensionTest, NothingIsLostWhereTheLastStepIsSaved) {
  Observed world = left(LastSave{120, ""}, kStep120);
  const Plan made = step(world);
  const Suspension expected{.step = 120, .saved = 120};
  EXPECT_EQ(suspension_of(world, *world.report, made.status), expected);
  EXPECT_EQ(expected.behind(), 0);
  EXPECT_EQ(made.status.message, text_of(expected));
}

TEST(SuspensionTest, AJobThatHasSavedNothingBeginsAnew) {
  Observed world = left(std::nullopt, "");
  EXPECT_EQ(suspension_of(world, *world.report, step(world).status).behind(), 120);
  world = left(LastSave{120, ""}, kStep120);
  world.keeps_checkpoints = false;
  EXPECT_EQ(suspension_of(world, *world.report, world.job.status).behind(), 120);
}

TEST(SuspensionTest, ItsMessageStaysWhenTheCoordinatorIsGone) {
  Observed world = left(LastSave{120, "no"}, kStep100);
  const std::string said = step(world).status.message;
  world.report = JobReport{};
  world.report->attempt = world.job.status.restarts.attempt;
  EXPECT_EQ(step(world).status.message, said);
  world.report.reset();
  EXPECT_EQ(step(world).status.message, said);
}

}  // namespace
}  // namespace paceline::plan
