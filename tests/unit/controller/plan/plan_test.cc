// Details of plans; transcripts_test.cc tells what happens to a job.

#include "controller/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/explain.h"
#include "tests/unit/controller/plan/passes.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(PlanTest, ManyPodsStartInDoublingBatches) {
  Observed world = make_world(0, 256);
  std::vector<std::size_t> batches;
  for (int i = 0; i < 20; ++i) {
    const Plan made = plan(world);
    const auto created = actions_of<CreatePod>(made);
    if (created.empty()) break;
    batches.push_back(created.size());
    const bool more = world.pods.size() + created.size() < 256;
    EXPECT_EQ(made.requeue_after == Duration::zero(), more);
    apply(made, world);
  }
  EXPECT_THAT(batches, ElementsAre(4, 4, 8, 16, 32, 64, 64, 64));
}

TEST(PlanTest, AConditionThatSomebodyMadeUnknownIsSaidAgain) {
  Observed world = make_running_world(0, 2);
  const api::Status known = world.job.status;
  const WallTime then = world.now;
  for (const char* type : api::kConditionTypes) {
    SCOPED_TRACE(type);
    world.job.status = known;
    std::erase_if(world.job.status.conditions, [&](const api::Condition& each) { return each.type == type; });
    world.job.status.conditions.push_back({.type = type, .last_transition = then, .unknown = true});
    world.now += 5s;
    const Plan made = plan(world);
    EXPECT_TRUE(made.actions.empty()) << explain(made);
    const auto& said = *std::ranges::find(made.status.conditions, type, &api::Condition::type);
    EXPECT_FALSE(said.unknown);
    EXPECT_EQ(said.status, said.type == "Created" || said.type == "Running");
    EXPECT_EQ(said.last_transition, world.now);
    EXPECT_FALSE(said.reason.empty());
    world.job.status = made.status;
    EXPECT_EQ(plan(world).status, made.status) << "once";
  }
}

TEST(PlanTest, ASpecThatWasInvalidForATimeIsNoReasonToDoAnything) {
  Observed world = make_running_world(0, 2);
  world.job.status.conditions.push_back({api::kInvalidSpec, true, "Refused", "steps: 0", world.now, {}});
  api::Status before = world.job.status;
  const Plan made = plan(world);
  EXPECT_TRUE(made.actions.empty()) << explain(made);
  EXPECT_FALSE(made.status.conditions.back().status);
  EXPECT_EQ(made.status.conditions.back().reason, "Mended");
  api::Status after = made.status;
  after.conditions.pop_back();
  before.conditions.pop_back();
  EXPECT_EQ(after, before);
}

int events(const Plan& made, const char* reason) {
  return static_cast<int>(std::ranges::count_if(
      actions_of<RecordEvent>(made), [&](const RecordEvent& each) { return each.event.reason == reason; }));
}

TEST(PlanTest, StragglerIsToldOfOnceAndRemembered) {
  Observed world = make_running_world(0, 3);
  const auto straggling = [](const Plan& made) {
    return std::ranges::find(made.status.conditions, api::kStraggling, &api::Condition::type)->status;
  };
  const auto pass = [&] {
    world.now += 1s;
    const Plan made = plan(world);
    world.job.status = made.status;
    return made;
  };
  world.report->stragglers = {api::Straggler{.pod = "job-worker-1-0", .factor = 1.5}};
  const Plan found = pass();
  EXPECT_EQ(events(found, "StragglerDetected"), 1);
  EXPECT_TRUE(straggling(found));
  ASSERT_EQ(found.status.stragglers.size(), 1U);
  EXPECT_EQ(found.status.stragglers[0].since, world.now);

  world.report->stragglers->front().factor = 1.6;
  const Plan again = pass();
  EXPECT_EQ(events(again, "StragglerDetected"), 0);
  EXPECT_EQ(again.status.stragglers[0].factor, 1.6);
  EXPECT_EQ(again.status.stragglers[0].since, found.status.stragglers[0].since);

  world.report->stragglers.reset();  // another coordinator has begun, and knows nothing yet
  const Plan unknown = pass();
  EXPECT_EQ(unknown.status.stragglers.size(), 1U);
  EXPECT_TRUE(straggling(unknown));

  world.report->stragglers.emplace();
  const Plan cleared = pass();
  EXPECT_EQ(events(cleared, "StragglerCleared"), 1);
  EXPECT_FALSE(straggling(cleared));
  EXPECT_TRUE(cleared.status.stragglers.empty());
}

TEST(PlanTest, JobThatHasEndedHasNoStragglers) {
  Observed world = make_running_world(0, 3);
  world.report->stragglers = {api::Straggler{.pod = "job-worker-1-0"}};
  world.job.status = plan(world).status;
  world.report->state = JobState::kFinished;
  for (cluster::Pod& pod : world.pods) pod.phase = cluster::PodPhase::kSucceeded;
  const Plan ended = plan(world);
  EXPECT_EQ(ended.status.phase, api::Phase::kSucceeded);
  EXPECT_TRUE(ended.status.stragglers.empty());
}

TEST(PlanTest, WithoutCoresToShareOutThePodsContainerDecides) {
  Observed world = make_world(0, 2);
  world.limits.cores = 0;
  world.job.spec.replica_specs.worker->container.emplace().cpu_limit = 1.5;
  const std::vector<Slot> slots = desired_slots(world.job);
  EXPECT_EQ(pod_spec(world, slots[0]).env.at("PACELINE_THREADS"), "2");
  world.job.spec.replica_specs.worker->container.reset();
  EXPECT_EQ(pod_spec(world, desired_slots(world.job)[0]).threads, 0);
  EXPECT_FALSE(pod_spec(world, desired_slots(world.job)[0]).env.contains("PACELINE_THREADS"));
}

TEST(PlanTest, CountsOfAGpuStayWhenNobodyTellsOfItAnyMore) {
  Observed world = make_running_world(0, 1);
  world.report->members.at(0).telemetry.gpu =
      GpuTelemetry{.name = "NVIDIA H200", .utilization = 0.93, .xids = 2};
  world.job.status = plan(world).status;
  EXPECT_EQ(world.job.status.members.at(0).telemetry, world.report->members.at(0).telemetry);
  world.report.reset();
  EXPECT_EQ(plan(world).status.members.at(0).telemetry.gpu, (GpuTelemetry{.name = "NVIDIA H200", .xids = 2}));
  world.pods[0].spec.name = "fashion-worker-0-1";
  EXPECT_FALSE(plan(world).status.members.at(0).telemetry.gpu) << "another pod's GPU is its own";
}

TEST(PlanTest, SamplesThatWereLeftOutAreSummedOverAllMembersThatTheJobHasHad) {
  Observed world = make_running_world(0, 2);
  const auto look = [&] {
    world.job.status = plan(world).status;
    return world.job.status.progress.dropped_samples;
  };
  for (std::size_t i = 0; i < 2; ++i) world.report->members.at(i).pod = world.pods.at(i).spec.name;
  world.report->members.at(0).telemetry.dropped_samples = 5;
  world.report->members.at(1).telemetry.dropped_samples = 30;
  EXPECT_EQ(look(), 35);
  EXPECT_EQ(look(), 35) << "once";
  world.report->members.at(1).telemetry.dropped_samples = 32;
  EXPECT_EQ(look(), 37);
  world.pods.at(1).spec.name = "fashion-worker-1-1";
  EXPECT_EQ(look(), 37) << "the coordinator tells of the pod before it";
  world.report->members.at(1).pod = "fashion-worker-1-1";
  world.report->members.at(1).telemetry.dropped_samples = 4;
  EXPECT_EQ(look(), 41);
  world.report->members.clear();
  EXPECT_EQ(look(), 41);
}

TEST(PlanTest, PodHasNothingOfAnEarlierOnesReport) {
  Observed world = make_running_world(0, 1);
  world.report->members.at(0).pod = world.pods.at(0).spec.name;
  ASSERT_GT(plan(world).status.members.at(0).step, 0);
  world.pods.at(0).spec.name = "fashion-worker-0-1";
  EXPECT_EQ(plan(world).status.members.at(0).step, 0);
  EXPECT_LT(plan(world).status.members.at(0).rank, 0);
}

TEST(PlanTest, ConditionsTellTheStory) {
  Observed world = make_running_world(0, 1);
  world.report->state = JobState::kFinished;
  finish(world, world.pods[0], 0);
  const api::Status status = plan(world).status;
  ASSERT_THAT(status.conditions, SizeIs(3));
  EXPECT_EQ(status.conditions[1].type, "Running");
  EXPECT_FALSE(status.conditions[1].status);
  EXPECT_EQ(status.conditions[1].last_transition, world.now);
  EXPECT_EQ(status.conditions[2].type, "Succeeded");
  EXPECT_TRUE(status.conditions[2].status);
}

TEST(PlanTest, NoEvaluatorIsLeftOfAJobThatHasNotFinished) {
  Observed world = make_world(0, 1);
  world.job.spec.replica_specs.worker->container = api::Container{.command = {"true"}};
  world.job.spec.replica_specs.evaluator = api::ReplicaSpec{.replicas = 1};
  apply(plan(world), world);
  ASSERT_THAT(world.pods, SizeIs(2));
  world.pods[1].phase = cluster::PodPhase::kRunning;
  finish(world, world.pods[0], 0);
  world.now += world.limits.report_grace;
  const Plan made = plan(world);
  EXPECT_EQ(made.status.reason, "NotFinished");
  const std::vector<DeletePod> gone = actions_of<DeletePod>(made);
  ASSERT_THAT(gone, SizeIs(1));
  EXPECT_EQ(gone[0].name, world.pods[1].spec.name);
}

TEST(PlanTest, AStrangeCommandThatEndsBeforeItAttachesHasNotFinished) {
  Observed world = make_world(0, 1);
  world.job.spec.replica_specs.worker->container = api::Container{.command = {"true"}};
  apply(plan(world), world);
  finish(world, world.pods.at(0), 0);
  world.now += world.limits.report_grace;
  EXPECT_EQ(plan(world).status.reason, "NotFinished");
  world.job.spec.replica_specs.worker->container.reset();
  EXPECT_EQ(plan(world).status.phase, api::Phase::kSucceeded);
}

TEST(RestartTest, TheBackOffDoublesAndHealsWithTime) {
  Observed world = restartable(0, 1);
  world.job.spec.run_policy.backoff_limit = 100;
  std::vector<std::int64_t> waits;  // seconds
  for (int i = 0; i < 12; ++i) {
    let_die(world, Role::kWorker, 0);
    const auto not_before = step(world).status.restarts.not_before;
    const Duration wait = not_before ? *not_before - world.now : 0s;
    waits.push_back(wait / 1s);
    advance(world);
    EXPECT_EQ(actions_of<CreatePod>(plan(world)).size(), wait > 0s ? 0u : 1u);
    world.now += wait;
    settle(world);
    EXPECT_EQ(world.job.status.phase, api::Phase::kRunning) << i;
  }
  EXPECT_THAT(waits, ElementsAre(0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300));
  EXPECT_EQ(world.job.status.restarts.in_a_row, 12);
  let_die(world, Role::kWorker, 0);
  EXPECT_EQ(*plan(world).status.restarts.not_before - world.now, world.limits.longest_back_off);
  world.now += world.limits.healthy_after;
  let_die(world, Role::kWorker, 0);
  EXPECT_EQ(plan(world).status.restarts.not_before, std::nullopt) << "it trained for long";
}

TEST(RestartTest, AnOldCopyOfTheJobDoesNoHarm) {
  Observed world = restartable(0, 2);
  Observed old = world;
  let_die(world, Role::kWorker, 1);
  step(world);
  settle(world);
  ASSERT_EQ(world.job.status.restarts.attempt, 1);
  old.pods = world.pods;
  const Plan made = plan(old);
  EXPECT_THAT(made.actions, IsEmpty());
  EXPECT_EQ(made.status.restarts.attempt, 0) << "one of a ring may have been replaced: the copy tells later";
  EXPECT_TRUE(made.requeue_after.has_value());
}

TEST(ServersTest, PodsAreMadeForAllRolesAndTheThreadsSharedOut) {
  Observed world = make_world(make_job_with_servers(1, 2, 1));
  world.limits.first_batch = 8;
  const Plan first = plan(world);
  ASSERT_THAT(actions_of<CreatePod>(first), SizeIs(5));
  for (const CreatePod& action : actions_of<CreatePod>(first)) {
    EXPECT_EQ(action.spec.threads, 2) << "8 cores for chief, worker and two servers";
    EXPECT_EQ(action.spec.command, world.limits.worker_program);
    EXPECT_EQ(action.spec.env.at("PACELINE_ROLE"), role_name(action.spec.role));
    EXPECT_FALSE(action.spec.env.contains("TF_CONFIG"));
  }
}

const api::MemberStatus& member_of(const Plan& plan, Role role, int index) {
  for (const api::MemberStatus& each : plan.status.members) {
    if (each.role == role && each.index == index) return each;
  }
  ADD_FAILURE() << "no member " << member_name(role, index);
  return plan.status.members.at(0);
}

TEST(ServersTest, TheStatusKeepsTheLastWordsOfServersAndWorkers) {
  Observed world = make_running_world(make_job_with_servers(1, 1));
  world.report->members.at(1).telemetry.staleness = StalenessTelemetry{
      .applied = 7, .dropped = 1, .max = 3, .mean = 0.5, .wait_seconds = 2, .histogram = {5, 1, 0, 1}};
  world.report->members.at(2).telemetry.server = ServerTelemetry{.load = 0.5,
                                                                 .bytes_per_second = 1e6,
                                                                 .queue = 2,
                                                                 .updates = 9,
                                                                 .rows = 40,
                                                                 .row_bytes = 800,
                                                                 .hottest = {{"deep", 5, 3}}};
  const Plan now = plan(world);
  EXPECT_EQ(member_of(now, Role::kWorker, 0).telemetry.staleness,
            world.report->members.at(1).telemetry.staleness);
  EXPECT_EQ(member_of(now, Role::kServer, 0).telemetry.server, world.report->members.at(2).telemetry.server);

  const auto told = member_of(now, Role::kWorker, 0).telemetry.staleness;
  world.job.status = now.status;
  world.report.reset();  // the job's end, or another controller that nobody has talked to yet
  EXPECT_EQ(member_of(plan(world), Role::kWorker, 0).telemetry.staleness, told) << "its last word";
  const ServerTelemetry counts{.updates = 9, .rows = 40, .row_bytes = 800, .hottest = {{"deep", 5, 3}}};
  EXPECT_EQ(member_of(plan(world), Role::kServer, 0).telemetry.server, counts)
      << "its last word; rates are of now";
  EXPECT_EQ(member_of(plan(world), Role::kWorker, 0).step, 120) << "its last word";
  pod_of(world, Role::kWorker, 0).spec.name = "fashion-worker-0-1";
  pod_of(world, Role::kServer, 0).spec.name = "fashion-ps-0-1";
  EXPECT_FALSE(member_of(plan(world), Role::kServer, 0).telemetry.server) << "another pod's rows are its own";
  EXPECT_FALSE(member_of(plan(world), Role::kWorker, 0).telemetry.staleness)
      << "another pod's gradients are its own";
  EXPECT_EQ(member_of(plan(world), Role::kWorker, 0).step, 0) << "another pod's steps are its own";
}

}  // namespace
}  // namespace paceline::plan
