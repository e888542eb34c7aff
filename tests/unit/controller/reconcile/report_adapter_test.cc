#include "controller/reconcile/report_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/plan/rules.h"
#include "controller/reconcile/coordinators.h"
#include "tests/support/small_job.h"

namespace paceline::reconcile {
namespace {

using ::testing::SizeIs;

TEST(ReportAdapterTest, TheNewestCheckpointIsKnownWhileMembersTrain) {
  coordinator::Report report;
  EXPECT_EQ(to_plan(report).checkpoint_path, "");
  report.last_checkpoint.emplace().path = "/paceline/checkpoints";
  EXPECT_EQ(to_plan(report).checkpoint_path, "/paceline/checkpoints");
  report.checkpoint_path = "/last";
  EXPECT_EQ(to_plan(report).checkpoint_path, "/last") << "rank 0 named it as it left";
  EXPECT_FALSE(to_plan(report).last_save);
  report.told_checkpoint = coordinator::CheckpointRecord{.step = 7, .error = "the disk is full"};
  ASSERT_TRUE(to_plan(report).last_save);
  EXPECT_EQ(to_plan(report).last_save->step, 7);
  EXPECT_EQ(to_plan(report).last_save->error, "the disk is full");
}

TEST(ReportAdapterTest, LearningRateIsThatOfTheLastStep) {
  coordinator::Report report;
  EXPECT_EQ(to_plan(report).learning_rate, std::nullopt);
  report.last_step = coordinator::StepRecord{.step = 3, .learning_rate = 0.25};
  EXPECT_EQ(to_plan(report).learning_rate, 0.25);
}

// A member says that it is at its end however it ends; only its goodbye says whether its work is done.
TEST(ReportAdapterTest, WhoLeavesWithItsWorkUndoneIsNeverCalledFinished) {
  for (const bool finished : {false, true}) {
    coordinator::Report report;
    report.state = coordinator::JobState::kRunning;
    report.generation.value = 1;
    report.members.push_back({.role = Role::kWorker, .index = 1, .finished = finished, .member_id = "m"});
    report.members[0].phase = coordinator::Phase::kFinished;
    plan::Observed world;
    world.job = small_job("fashion");
    world.job.status.phase = api::Phase::kRunning;
    world.report = to_plan(report);
    for (const int index : {0, 1}) {
      cluster::Pod pod;
      pod.spec.name = str_cat("fashion-worker-", index, "-0");
      pod.spec.index = index;
      pod.phase = cluster::PodPhase::kRunning;
      world.pods.push_back(pod);
    }
    StoredJob next{.job = small_job("fashion"), .uid = "u1"};
    next.job.status = plan::plan(world).status;
    ASSERT_THAT(next.job.status.members, SizeIs(2));
    EXPECT_EQ(next.job.status.members[1].phase, finished ? plan::kFinishedPhase : "leaving");
    const CoordinatorsOptions options;
    const auto core = core_config("default/fashion", next, "token", options);
    ASSERT_TRUE(core.ok());
    EXPECT_THAT(core->finished, SizeIs(finished ? 1 : 0)) << "another controller's coordinator";
  }
}

TEST(ReportAdapterTest, TelemetryIsTakenAsItIs) {
  coordinator::Report report;
  report.members.resize(2);
  report.members[0].member_id = "uid-0";
  report.members[1].member_id = "uid-1";
  report.members[0].telemetry.compute_ms = 1.5;
  report.members[0].telemetry.gpu = GpuTelemetry{.name = "NVIDIA H200", .xids = 2};
  EXPECT_EQ(to_plan(report).members.at(0).telemetry, report.members[0].telemetry);
  EXPECT_EQ(to_plan(report).members.at(1).telemetry, MemberTelemetry());
}

}  // namespace
}  // namespace paceline::reconcile
