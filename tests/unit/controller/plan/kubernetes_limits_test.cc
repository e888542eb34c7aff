#include "controller/plan/kubernetes_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

TEST(KubernetesLimitsTest, ARefusedPodIsWaitedForAndMembersShareANodesProcessors) {
  Observed world = make_world(1, 2);
  world.limits = kubernetes_limits();
  world.create_failure = CreateFailure{1000, "fashion-chief-0-0", "exceeded quota"};
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kStarting);
  const std::vector<CreatePod> pods = actions_of<CreatePod>(made);
  ASSERT_EQ(pods.size(), 3u);
  for (const CreatePod& pod : pods) EXPECT_EQ(pod.spec.threads, 1);
}

// One pass, so that nothing is written in between.
TEST(KubernetesLimitsTest, TheFirstPassCreatesAllPodsOfASmallJob) {
  Observed world = make_world(1, 7);
  world.limits = kubernetes_limits();
  EXPECT_EQ(actions_of<CreatePod>(plan(world)).size(), 8u);
}

// What a job costs the API server while nothing but its progress changes.
TEST(KubernetesLimitsTest, ProgressIsWrittenOnceInTenSeconds) {
  EXPECT_EQ(kKubernetesStatusInterval, std::chrono::seconds(10));
  Observed world = make_running_world(1, 2);
  world.limits = kubernetes_limits();
  EXPECT_EQ(plan(world).requeue_after, kKubernetesStatusInterval) << "and not looked at more often";
}

}  // namespace
}  // namespace paceline::plan
