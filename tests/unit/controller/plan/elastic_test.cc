#include "controller/plan/elastic.h"

#include <gtest/gtest.h>

#include "controller/diagnosis/diagnosis.h"
#include "tests/unit/controller/plan/world.h"

// The stories of losses are testdata/elastic.txt.

namespace paceline::plan {
namespace {

using enum api::RestartPolicy;

TEST(ElasticTest, RingsWhoseMembersMayStartAgainAreElastic) {
  api::TrainingJob job = make_job(1, 2);
  EXPECT_FALSE(is_elastic(job)) << "Never, and all are needed";
  job.spec.replica_specs.worker->restart_policy = kOnFailure;
  EXPECT_TRUE(is_elastic(job));
  EXPECT_TRUE(is_elastic(job, Role::kChief));
  EXPECT_FALSE(is_elastic(job, Role::kEvaluator));
  job.spec.strategy.type = api::StrategyType::kParameterServer;
  EXPECT_FALSE(is_elastic(job)) << "the state is the servers'";
}

TEST(ElasticTest, SmallerRingsAreElasticWithoutReplacement) {
  api::TrainingJob job = make_job(1, 2);
  EXPECT_EQ(least_trainers(job), std::nullopt);
  EXPECT_EQ(min_trainers(job), 1);
  job.spec.replica_specs.worker->min_replicas = 2;
  EXPECT_TRUE(is_elastic(job));
  EXPECT_EQ(least_trainers(job), 2);
  EXPECT_EQ(min_trainers(job), 2);
}

TEST(ElasticTest, JobsWhoseOwnProgramTrainsAreNot) {
  api::TrainingJob job = make_job(1, 2);
  job.spec.replica_specs.worker->restart_policy = kAlways;
  job.spec.training.reset();
  EXPECT_FALSE(is_elastic(job));
}

TEST(ElasticTest, ARingThatWaitsForMinReplicasSaysSoOnceUntilItTrainsAgain) {
  api::TrainingJob job = make_job(1, 2);
  job.spec.replica_specs.worker->restart_policy = kOnFailure;
  job.spec.replica_specs.worker->min_replicas = 2;
  Observed world = make_running_world(job);
  const auto look = [&](JobState state, std::optional<Shortage> shortage) {
    world.report->state = state;
    world.report->shortage = shortage;
    Plan made = plan(world);
    apply(made, world);
    return made;
  };
  const auto warnings = [](const Plan& made) {
    return std::ranges::count_if(actions_of<RecordEvent>(made), [](const RecordEvent& record) {
      return record.event.warning && record.event.reason == kTooFewMembers;
    });
  };
  Plan made = look(JobState::kForming, Shortage{.here = 0, .missing = 2});
  EXPECT_EQ(made.status.phase, api::Phase::kRunning);
  EXPECT_EQ(made.status.reason, kTooFewMembers);
  EXPECT_EQ(warnings(made), 1);
  const std::string first = made.status.message;
  made = look(JobState::kForming, Shortage{.here = 1, .missing = 1});
  EXPECT_EQ(made.status.reason, kTooFewMembers);
  EXPECT_NE(made.status.message, first) << "it counts";
  EXPECT_EQ(warnings(made), 0);
  made = look(JobState::kForming, std::nullopt);
  EXPECT_EQ(made.status.reason, kTooFewMembers);
  made = look(JobState::kRunning, std::nullopt);
  EXPECT_EQ(made.status.reason, "MembersTrain");
}

// worker-1 is replaced, and its node says nothing.
Observed with_a_silent_worker(api::FaultKind kind) {
  api::TrainingJob job = make_job(1, 2);
  job.spec.replica_specs.worker->restart_policy = kOnFailure;
  Observed world = make_running_world(job);
  cluster::Pod& old = pod_of(world, Role::kWorker, 1);
  old.host = "node-2";
  old.deleting = true;
  world.job.status.fault = api::Fault{.kind = kind, .role = Role::kWorker, .index = 1, .pod = old.spec.name};
  const bool silent = diagnosis::fell_silent(*world.job.status.fault);
  world.job.status.restarts.replacements = {
      {.role = Role::kWorker, .index = 1, .count = 1, .silent_pod = silent ? old.spec.name : ""}};
  return world;
}

TEST(ElasticTest, ThePodAfterASilentMemberAvoidsItsNode) {
  for (const auto kind : {api::FaultKind::kFrozen, api::FaultKind::kUnreachable}) {
    const Plan plan = plan::plan(with_a_silent_worker(kind));
    const auto created = actions_of<CreatePod>(plan);
    ASSERT_EQ(created.size(), 1);
    EXPECT_EQ(created[0].spec.name, "fashion-worker-1-1");
    EXPECT_EQ(created[0].spec.avoid_host, "node-2");
  }
}

TEST(ElasticTest, NoNodeIsAvoidedWhereTheMemberHasEndedOrWasHeard) {
  Observed ended = with_a_silent_worker(api::FaultKind::kFrozen);
  finish(ended, ended.pods.back(), 137);
  Observed gone = with_a_silent_worker(api::FaultKind::kFrozen);
  gone.pods.pop_back();
  for (const Observed& world : {ended, gone, with_a_silent_worker(api::FaultKind::kHung)}) {
    const auto created = actions_of<CreatePod>(plan(world));
    ASSERT_EQ(created.size(), 1);
    EXPECT_EQ(created[0].spec.avoid_host, "");
  }
}

TEST(ElasticTest, APodThatFindsNoRoomIsMadeAnewWhenItsNodeIsKnownToBeWell) {
  Observed world = with_a_silent_worker(api::FaultKind::kFrozen);
  const std::string old = world.pods.back().spec.name;
  apply(plan(world), world);
  cluster::Pod& waits = world.pods.back();
  ASSERT_EQ(waits.spec.name, "fashion-worker-1-1");
  waits.host.clear();
  EXPECT_TRUE(actions_of<DeletePod>(plan(world)).empty()) << "the node may be dead";
  std::erase_if(world.pods, [&](const cluster::Pod& pod) { return pod.spec.name == old; });
  const Plan noted = plan(world);
  EXPECT_TRUE(actions_of<DeletePod>(noted).empty()) << "its number is written first";
  EXPECT_EQ(noted.status.restarts.total, world.job.status.restarts.total) << "nobody is charged";
  apply(noted, world);
  const Plan made = plan(world);
  const auto deleted = actions_of<DeletePod>(made);
  ASSERT_EQ(deleted.size(), 1);
  EXPECT_EQ(deleted[0].name, "fashion-worker-1-1");
  const auto created = actions_of<CreatePod>(made);
  ASSERT_EQ(created.size(), 1);
  EXPECT_EQ(created[0].spec.name, "fashion-worker-1-2");
  EXPECT_EQ(created[0].spec.avoid_host, "");
}

TEST(ElasticTest, APodThatHasANodeStays) {
  Observed world = with_a_silent_worker(api::FaultKind::kFrozen);
  apply(plan(world), world);
  world.pods.back().host = "node-1";
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.host == "node-2"; });
  EXPECT_TRUE(actions_of<DeletePod>(plan(world)).empty());
}

}  // namespace
}  // namespace paceline::plan
