// A member that fell silent: its node has died, or its process hangs (plan/rule_provisional.cc).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class SilenceTest : public ReconcilerTest {
 protected:
  SilenceTest() { replace_workers(0); }
  // Pods stay that are deleted; the one worker's heartbeats have stopped.
  void fall_silent() {
    bring_up();
    cluster_.end_deleted_at_once(false);
    (*reports_.report_.lock())->fault =
        api::Fault{.kind = api::FaultKind::kFrozen, .role = Role::kWorker, .index = 0};
    pass();
  }
};

// A job that may have no more restarts, and a controller that ends while it waits.
TEST_F(SilenceTest, AMemberWhoseNodeDiesIsNotChargedThoughItFallsSilentFirst) {
  fall_silent();
  EXPECT_EQ(status().phase, api::Phase::kRestarting) << status().message;
  EXPECT_THAT(status().restarts.by_cause,
              ElementsAre(api::RestartCount{Role::kWorker, api::RestartCause::kSilent, 1}));
  const api::Status waiting = status();
  reconciler_.emplace(cluster_, jobs_, reports_, clock_, queue_, limits_, Logger::none());
  clock_.advance(1min);
  pass();
  EXPECT_EQ(status().restarts, waiting.restarts);
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-0", "fashion-worker-0-0"));
  cluster_.lose_node("fashion-worker-0-0");
  pass();
  EXPECT_EQ(status().phase, api::Phase::kRestarting);
  EXPECT_THAT(status().restarts.by_cause,
              ElementsAre(api::RestartCount{Role::kWorker, api::RestartCause::kNodeLost, 1}));
  cluster_.end_deleted();
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-1", "fashion-worker-0-1"));
}

TEST_F(SilenceTest, JobAtItsLimitFailsWhenTheSilentPodIsGone) {
  fall_silent();
  ASSERT_EQ(status().phase, api::Phase::kRestarting) << status().message;
  pass();
  EXPECT_EQ(status().phase, api::Phase::kRestarting);
  cluster_.end_deleted();
  pass();
  EXPECT_EQ(status().phase, api::Phase::kFailed);
  EXPECT_EQ(status().reason, "BackoffLimitExceeded");
  EXPECT_THAT(status().message, HasSubstr("its node is not lost: the pod is gone"));
  EXPECT_THAT(pods(), SizeIs(0));
}

}  // namespace
}  // namespace paceline::reconcile
