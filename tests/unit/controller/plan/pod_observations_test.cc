// Nodes' clocks may be ahead of the controller's, or behind: what waits for time to pass goes by its own.

#include "controller/plan/pod_observations.h"

#include <gtest/gtest.h>

#include "controller/plan/explain.h"
#include "tests/unit/controller/plan/passes.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using api::Phase;

class ClocksTest : public ::testing::TestWithParam<Duration> {
 protected:
  // The pod has just ended, says its node by its clock.
  void end(Observed& world, Role role, int index, int code) const {
    cluster::Pod& pod = pod_of(world, role, index);
    finish(world, pod, code);
    *pod.finished += GetParam();
    *pod.started += GetParam();
    world.seen.erase(pod.uid);
    note_pod_observations(world);
  }
};

TEST_P(ClocksTest, AVerdictIsWaitedForAsLongAsItMayTake) {
  Observed world = restartable(0, 2);
  end(world, Role::kWorker, 1, 137);
  EXPECT_EQ(plan(world).status.phase, Phase::kRunning) << explain(plan(world));
  world.now += world.limits.verdict_grace - std::chrono::milliseconds(1);
  EXPECT_EQ(plan(world).status.phase, Phase::kRunning) << explain(plan(world));
  EXPECT_EQ(plan(world).requeue_after, std::chrono::milliseconds(1));
  world.now += std::chrono::milliseconds(1);
  EXPECT_EQ(plan(world).status.phase, Phase::kRestarting) << explain(plan(world));
}

TEST_P(ClocksTest, AVerdictIsNotWaitedForLongerWhereTheClockIsSetBack) {
  Observed world = restartable(0, 2);
  end(world, Role::kWorker, 1, 137);
  world.now -= 1h;
  note_pod_observations(world);
  EXPECT_EQ(plan(world).status.phase, Phase::kRunning) << explain(plan(world));
  world.now += world.limits.verdict_grace;
  note_pod_observations(world);
  EXPECT_EQ(plan(world).status.phase, Phase::kRestarting) << explain(plan(world));
}

TEST_P(ClocksTest, AFinishThatNobodyReportsIsWaitedForAsLongAsItMayTake) {
  Observed world = make_running_world(0, 2);
  for (const int index : {0, 1}) end(world, Role::kWorker, index, 0);
  EXPECT_EQ(plan(world).status.phase, Phase::kRunning) << explain(plan(world));
  world.now += world.limits.report_grace - 1ms;
  EXPECT_EQ(plan(world).status.phase, Phase::kRunning);
  world.now += 1ms;
  EXPECT_EQ(plan(world).status.reason, "NotFinished") << explain(plan(world));
}

TEST_P(ClocksTest, OthersHaveTheirTimeToEndOnceTheLeaderHas) {
  Observed world = make_world(1, 1);
  world.report.reset();
  for (int i = 0; i < 3; ++i) {
    step(world);
    advance(world);
  }
  end(world, Role::kChief, 0, 0);
  EXPECT_TRUE(actions_of<DeletePod>(plan(world)).empty()) << explain(plan(world));
  world.now += world.limits.finish_grace;
  EXPECT_EQ(actions_of<DeletePod>(plan(world)).size(), 1u) << explain(plan(world));
}

TEST_P(ClocksTest, AMemberThatDoesNotJoinIsMissedInTime) {
  Observed world = make_world(0, 2);
  for (int i = 0; i < 2; ++i) {
    step(world);
    advance(world);
  }
  std::erase_if(world.report->members, [](const ReportedMember& member) { return member.index == 1; });
  *pod_of(world, Role::kWorker, 1).started += GetParam();
  world.report->state = JobState::kForming;
  world.report->generation.value = 0;
  world.report->in_state = 1h;
  note_pod_observations(world);
  EXPECT_EQ(plan(world).status.phase, Phase::kStarting) << explain(plan(world));
  world.now += world.limits.attach_timeout;
  EXPECT_EQ(plan(world).status.reason, "MemberMissing") << explain(plan(world));
}

TEST_P(ClocksTest, AMemberThatDoesNotJoinBesideAViewIsMissedInTime) {
  Observed world = restartable(0, 2);
  std::erase_if(world.report->members, [](const ReportedMember& member) { return member.index == 1; });
  *pod_of(world, Role::kWorker, 1).started += GetParam();
  world.report->in_state = 1h;
  note_pod_observations(world);
  EXPECT_TRUE(plan(world).absent.empty());
  world.now += world.limits.attach_timeout;
  note_pod_observations(world);
  const Plan late = plan(world);
  ASSERT_EQ(late.absent.size(), 1u) << explain(late);
  EXPECT_EQ(late.absent[0].index, 1);
}

INSTANTIATE_TEST_SUITE_P(Nodes, ClocksTest, ::testing::Values(Duration(10min), Duration(), Duration(-10min)));

TEST(PodObservationsTest, ArePerPodAndPhaseAndForgotten) {
  Observed world = make_running_world(0, 2);
  note_pod_observations(world);
  cluster::Pod& pod = pod_of(world, Role::kWorker, 0);
  finish(world, pod, 1);
  world.now += 5s;
  note_pod_observations(world);
  EXPECT_EQ(seen_for(world, pod), 5s);
  EXPECT_EQ(seen_for(world, pod_of(world, Role::kWorker, 1)), 15s) << "it may have to join yet";
  world.now -= 1min;  // the controller's own clock was set
  EXPECT_EQ(seen_for(world, pod), 0s);
  world.pods.clear();
  note_pod_observations(world);
  EXPECT_TRUE(world.seen.empty());
}

}  // namespace
}  // namespace paceline::plan
