#include "controller/plan/elastic.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "controller/diagnosis/diagnosis.h"
#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/passes.h"
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
  EXPECT_EQ(min_trainers(job), 1);
  EXPECT_FALSE(is_elastic(job, Role::kEvaluator));
  job.spec.strategy.type = api::StrategyType::kParameterServer;
  EXPECT_FALSE(is_elastic(job)) << "the state is the servers'";
}

TEST(ElasticTest, SmallerRingsAreElasticWithoutReplacement) {
  api::TrainingJob job = make_job(1, 2);
  EXPECT_EQ(least_trainers(job), std::nullopt);
  EXPECT_EQ(min_trainers(job), 3) << "no view is formed without one of them";
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

TEST(PlanElasticTest, ConditionTellsOfTheNewestViewAsTheMessageDoes) {
  Observed world = make_running_world(make_job(1, 3));
  apply(plan(world), world);
  world.now += std::chrono::minutes(1);
  world.report->generation = Generation{5};
  const Plan made = plan(world);
  const api::Condition& running = condition(made.status, "Running");
  EXPECT_EQ(running.message, made.status.message);
  EXPECT_NE(running.message.find("view 5"), std::string::npos);
  EXPECT_EQ(running.last_transition, condition(world.job.status, "Running").last_transition)
      << "it stays True";
}

// worker-1 can't read its data, and was replaced because of that.
Observed with_unreadable_data(std::int64_t in_a_row, std::optional<std::int64_t> min_replicas) {
  api::TrainingJob job = make_job(1, 3);
  job.spec.replica_specs.worker->restart_policy = kOnFailure;
  job.spec.replica_specs.worker->min_replicas = min_replicas;
  job.spec.run_policy.backoff_limit = in_a_row + 2;
  Observed world = make_running_world(job);
  api::Restarts& restarts = world.job.status.restarts;
  restarts.by_cause = {{Role::kWorker, api::RestartCause::kDataUnreadable, in_a_row}};
  restarts.total = in_a_row;
  restarts.replacements = {
      {.role = Role::kWorker, .index = 1, .count = in_a_row, .in_a_row = in_a_row, .last = world.now}};
  cluster::Pod& pod = pod_of(world, Role::kWorker, 1);
  pod.spec.attempt = static_cast<int>(in_a_row);
  pod.spec.name = pod_name(world.job, Role::kWorker, 1, in_a_row);
  finish(world, pod, 1, std::chrono::seconds(1));
  const api::Fault fault{.kind = api::FaultKind::kDataUnreadable,
                         .role = Role::kWorker,
                         .index = 1,
                         .pod = pod.spec.name,
                         .cause = api::RestartCause::kDataUnreadable};
  world.report->lost = {{.fault = fault, .age = std::chrono::seconds(1)}};
  return world;
}

std::int64_t count_of(const api::Status& status) {
  return status.restarts.replacements.front().count;
}

TEST(ElasticTest, AMemberThatNeverReadsItsDataIsGivenUpWhereEnoughAreLeft) {
  Observed world = with_unreadable_data(kDataTries, 3);
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kRunning);
  EXPECT_EQ(made.status.reason, "MemberLost");
  EXPECT_EQ(count_of(made.status), kDataTries) << "no other pod";
  EXPECT_EQ(made.status.restarts.total, kDataTries) << "the budget is left to the others";
  apply(made, world);
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.ended(); });
  world.now += std::chrono::hours(1);
  world.report->lost[0].age += std::chrono::hours(1);
  const Plan later = plan(world);
  EXPECT_EQ(count_of(later.status), kDataTries);
  EXPECT_TRUE(actions_of<CreatePod>(later).empty());
}

TEST(ElasticTest, AMemberThatIsNeededOrMayYetReadItsDataIsReplaced) {
  EXPECT_EQ(count_of(plan(with_unreadable_data(kDataTries - 1, 3)).status), kDataTries) << "it may yet";
  for (const Observed& world : {with_unreadable_data(kDataTries, 4), with_unreadable_data(kDataTries, {})})
    EXPECT_EQ(count_of(plan(world).status), kDataTries + 1) << "all are needed";
  Observed other = with_unreadable_data(kDataTries, 3);
  other.report->lost[0].fault.cause = api::RestartCause::kKilled;
  other.report->lost[0].fault.kind = api::FaultKind::kKilled;
  EXPECT_EQ(count_of(plan(other).status), kDataTries + 1) << "another start may help";
  Observed lived = with_unreadable_data(kDataTries, 3);
  lived.job.status.restarts.replacements[0].last = lived.now - std::chrono::hours(1);
  EXPECT_EQ(count_of(plan(lived).status), kDataTries + 1) << "it had read it";
}

TEST(ElasticTest, TheLossOfAMemberThatIsNotReplacedIsToldWithItsEnd) {
  api::TrainingJob job = make_job(1, 3);
  job.spec.replica_specs.worker->min_replicas = 1;
  Observed world = make_running_world(job);
  const api::Fault fault{.kind = api::FaultKind::kDead,
                         .role = Role::kWorker,
                         .index = 1,
                         .evidence = {{api::ObservationKind::kStreamEnded, ""}}};
  world.report->lost = {{.fault = fault, .age = Duration::zero()}};
  const Plan awaits = plan(world);
  EXPECT_NE(awaits.status.reason, "MemberLost") << "why its process ended is known soon";
  EXPECT_TRUE(std::ranges::none_of(awaits.status.members, [](const api::MemberStatus& member) {
    return member.phase == kLostPhase;
  })) << "else it would count as told";
  EXPECT_LE(awaits.requeue_after, world.limits.exit_grace);
  Observed late = world;
  late.report->lost[0].age = late.limits.exit_grace;
  EXPECT_EQ(plan(late).status.reason, "MemberLost") << "or never";
  cluster::Pod& pod = pod_of(world, Role::kWorker, 1);
  pod.phase = cluster::PodPhase::kFailed;
  pod.signal = 9;
  const Plan told = plan(world);
  EXPECT_EQ(told.status.reason, "MemberLost");
  ASSERT_TRUE(told.status.fault);
  EXPECT_EQ(told.status.fault->kind, api::FaultKind::kKilled);
  EXPECT_EQ(told.status.fault->signal, 9);
}

TEST(ElasticTest, ThePlaceOfALostMemberMayBeThatOfOneThatStoodBy) {
  for (const std::int64_t standby : {0, 1}) {
    api::TrainingJob job = make_job(1, 2);
    job.spec.replica_specs.worker->restart_policy = kOnFailure;
    job.spec.replica_specs.worker->standby = standby;
    Observed world = make_running_world(job);
    world.report->lost = {{.fault = {.kind = api::FaultKind::kHung, .role = Role::kWorker, .index = 1},
                           .age = Duration::zero()}};
    const Plan made = plan(world);
    const auto events = actions_of<RecordEvent>(made);
    const auto told = std::ranges::find_if(
        events, [](const RecordEvent& each) { return each.event.reason == kMemberReplaced; });
    ASSERT_NE(told, events.end());
    const std::string& message = told->event.message;
    EXPECT_EQ(message.find("to take its place") != std::string::npos, standby == 0) << message;
  }
}

TEST(ElasticTest, LostMembersAndEndedPodsAreNoOthersThatLive) {
  api::TrainingJob job = make_job(1, 2);
  job.spec.replica_specs.worker->restart_policy = kOnFailure;
  Observed world = make_running_world(job);
  EXPECT_TRUE(others_live(world, Role::kWorker, 1));
  world.report->lost = {{.fault = {.kind = api::FaultKind::kHung, .role = Role::kWorker, .index = 0}}};
  EXPECT_TRUE(others_live(world, Role::kWorker, 1)) << "the chief does";
  pod_of(world, Role::kChief, 0).phase = cluster::PodPhase::kFailed;
  EXPECT_FALSE(others_live(world, Role::kWorker, 1));
  EXPECT_TRUE(others_live(world, Role::kChief, 0));
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

TEST(ElasticTest, APodWhoseMemberIsHeardOfBeforeItsNodeStays) {
  Observed world = with_a_silent_worker(api::FaultKind::kFrozen);
  apply(plan(world), world);
  world.pods.back().host.clear();
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.host == "node-2"; });
  world.report->members.push_back({{.role = Role::kWorker, .index = 1, .pod = "fashion-worker-1-1"}});
  EXPECT_EQ(plan(world).status.restarts, world.job.status.restarts);
}

}  // namespace
}  // namespace paceline::plan
