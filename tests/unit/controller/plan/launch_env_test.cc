#include "controller/plan/launch_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

// A job whose templates' own commands run.
Observed make_own_world(int chiefs, int workers) {
  Observed world = make_world(chiefs, workers);
  world.job.spec.training.reset();
  for (auto* replica : {&world.job.spec.replica_specs.chief, &world.job.spec.replica_specs.worker}) {
    if (*replica) (*replica)->container.emplace().image = "pytorch:2";
  }
  world.coordinator_env.clear();
  world.report.reset();
  return world;
}

TEST(LaunchEnvTest, RanksFollowTheRing) {
  const api::TrainingJob job = make_own_world(1, 2).job;
  const std::vector<Slot> slots = desired_slots(job);
  for (int rank = 0; rank < 3; ++rank) {
    const auto env = launch_env(job, slots[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(env.at("RANK"), std::to_string(rank));
    EXPECT_EQ(env.at("PET_NODE_RANK"), std::to_string(rank));
    for (const char* size : {"WORLD_SIZE", "PET_NNODES"}) EXPECT_EQ(env.at(size), "3");
    for (const char* master : {"MASTER_ADDR", "PET_MASTER_ADDR"})
      EXPECT_EQ(env.at(master), "fashion-chief-0.fashion.default.svc");
    for (const char* port : {"MASTER_PORT", "PET_MASTER_PORT"}) EXPECT_EQ(env.at(port), "29500");
    for (const char* local : {"LOCAL_RANK"}) EXPECT_EQ(env.at(local), "0");
    EXPECT_EQ(env.at("PET_NPROC_PER_NODE"), "1");
  }
}

TEST(LaunchEnvTest, WithoutAChiefWorkerZeroIsRankZero) {
  const api::TrainingJob job = make_own_world(0, 2).job;
  const auto env = launch_env(job, desired_slots(job)[1]);
  EXPECT_EQ(env.at("MASTER_ADDR"), "fashion-worker-0.fashion.default.svc");
  EXPECT_EQ(env.at("RANK"), "1");
  EXPECT_EQ(env.at("TF_CONFIG"),
            R"({"cluster":{"worker":["fashion-worker-0.fashion.default.svc:2222",)"
            R"("fashion-worker-1.fashion.default.svc:2222"]},"task":{"type":"worker","index":1},)"
            R"("environment":"cloud"})");
}

TEST(LaunchEnvTest, ServersAndEvaluatorsHaveNoRank) {
  api::TrainingJob job = make_own_world(0, 1).job;
  job.spec.replica_specs.ps = job.spec.replica_specs.worker;
  job.spec.replica_specs.evaluator = job.spec.replica_specs.worker;
  const std::vector<Slot> slots = desired_slots(job);
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(launch_env(job, slots[0]).at("WORLD_SIZE"), "1");
  for (std::size_t i : {1u, 2u}) {
    const auto env = launch_env(job, slots[i]);
    EXPECT_THAT(env, Not(Contains(Key("RANK"))));
    EXPECT_THAT(env.at("TF_CONFIG"),
                ::testing::HasSubstr(R"("ps":["fashion-ps-0.fashion.default.svc:2222"])"));
  }
}

TEST(LaunchEnvTest, TheTemplatesOwnCommandRuns) {
  Observed world = make_own_world(1, 1);
  const cluster::PodSpec image = pod_spec(world, desired_slots(world.job)[0]);
  EXPECT_TRUE(image.command.empty()) << "the image's own";
  EXPECT_EQ(image.env.at("RANK"), "0");
  EXPECT_THAT(image.env, Not(Contains(Key("PACELINE_COORDINATOR"))));
  world.job.spec.replica_specs.worker->container->command = {"python", "-m", "train"};
  world.job.spec.replica_specs.worker->container->args = {"--epochs", "3"};
  const cluster::PodSpec own = pod_spec(world, desired_slots(world.job)[1]);
  EXPECT_EQ(own.command, (std::vector<std::string>{"python", "-m", "train", "--epochs", "3"}));
  EXPECT_THAT(pod_spec(make_world(1, 1), desired_slots(make_world(1, 1).job)[0]).env,
              Not(Contains(Key("RANK"))))
      << "the built-in trainer needs none of it";
}

// The chief's end is the job's, and nobody waits for a coordinator.
TEST(LaunchEnvTest, TheLeadersEndDecidesTheJob) {
  Observed world = make_own_world(1, 2);
  apply(plan(world), world);
  advance(world);
  Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kRunning);
  EXPECT_EQ(made.status.reason, "PodsRun");
  apply(made, world);
  finish(world, pod_of(world, Role::kWorker, 1), 0);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kRunning) << "a worker may end first";
  finish(world, pod_of(world, Role::kChief, 0), 0);
  finish(world, pod_of(world, Role::kWorker, 0), 0);
  made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kSucceeded);
  EXPECT_TRUE(made.done);
}

TEST(LaunchEnvTest, AFailureStartsAllAgainByThePolicy) {
  Observed world = make_own_world(1, 1);
  world.job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
  apply(plan(world), world);
  advance(world);
  apply(plan(world), world);
  finish(world, pod_of(world, Role::kWorker, 0), 1);
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kRestarting);
  EXPECT_EQ(made.status.restarts.attempt, 1);
  world.job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kNever;
  EXPECT_EQ(plan(world).status.phase, api::Phase::kFailed);
}

// On this machine members have ports instead of host names, and a command that hears of their steps.
TEST(LaunchEnvTest, OnOneMachineMembersMeetAtItsPorts) {
  Observed world = make_own_world(1, 2);
  world.job.spec.replica_specs.ps = world.job.spec.replica_specs.worker;
  world.job.spec.replica_specs.ps->replicas = 1;
  for (auto* replica : {&world.job.spec.replica_specs.worker, &world.job.spec.replica_specs.ps})
    (*replica)->container->command = {"python3", "train.py"};
  world.limits.first_port = 40000;
  world.limits.step_teller = {"/opt/paceline-worker", "--steps"};
  const std::vector<Slot> slots = desired_slots(world.job);
  const cluster::PodSpec worker = pod_spec(world, slots[2]), server = pod_spec(world, slots[3]);
  EXPECT_EQ(worker.env.at("MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(worker.env.at("PET_MASTER_PORT"), "40000");
  EXPECT_EQ(worker.env.at("TF_CONFIG"),
            R"({"cluster":{"chief":["127.0.0.1:40001"],"worker":["127.0.0.1:40002","127.0.0.1:40003"],)"
            R"("ps":["127.0.0.1:40004"]},"task":{"type":"worker","index":1},"environment":"cloud"})");
  EXPECT_EQ(worker.command,
            (std::vector<std::string>{"/opt/paceline-worker", "--steps", "python3", "train.py"}));
  EXPECT_EQ(server.command, (std::vector<std::string>{"python3", "train.py"})) << "it takes no steps";
}

TEST(LaunchEnvTest, PodsOfThoseWhoTrainHearOfStepsWhereTheJobAsksForIt) {
  Observed world = make_own_world(1, 1);
  world.job.spec.replica_specs.ps = world.job.spec.replica_specs.worker;
  const std::vector<Slot> slots = desired_slots(world.job);
  EXPECT_FALSE(pod_spec(world, slots[0]).hears_steps);
  world.job.spec.stragglers.told_by_program = true;
  EXPECT_TRUE(pod_spec(world, slots[0]).hears_steps);
  EXPECT_TRUE(pod_spec(world, slots[1]).hears_steps);
  EXPECT_FALSE(pod_spec(world, slots[2]).hears_steps) << "a server takes no steps";
}

// The planner shows what programs tell, and decides nothing by it.
TEST(LaunchEnvTest, AMemberThatProgramsTellToBeSlowIsReportedAndStays) {
  Observed world = make_own_world(0, 3);
  world.job.spec.stragglers.action = api::StragglerPolicyAction::kReplace;
  world.job.spec.stragglers.lost_seconds = 0;
  world.job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
  apply(plan(world), world);
  advance(world);
  apply(plan(world), world);
  JobReport told{.state = JobState::kRunning};
  told.members.emplace_back();
  told.members.back().role = Role::kWorker;
  told.members.back().index = 1;
  told.members.back().rank = 1;
  told.members.back().step = 70;
  told.members.back().phase = "training";
  told.members.back().telemetry.compute_ms = 25;
  told.progress.step = 71;
  told.stragglers = {{.role = Role::kWorker, .index = 1, .pod = "fashion-worker-1-0", .factor = 2.5}};
  world.told = told;
  world.now += std::chrono::hours(1);
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kRunning);
  EXPECT_EQ(made.status.reason, "PodsRun");
  EXPECT_EQ(made.status.progress.step, 71);
  ASSERT_EQ(made.status.stragglers.size(), 1U);
  EXPECT_EQ(made.status.stragglers[0].action, api::StragglerAction::kReport);
  EXPECT_FALSE(made.status.stragglers[0].why.empty());
  EXPECT_TRUE(actions_of<CreatePod>(made).empty());
  EXPECT_TRUE(actions_of<DeletePod>(made).empty());
  EXPECT_TRUE(made.requeue_after) << "more is told any time";
  const api::MemberStatus& member = made.status.members[1];
  EXPECT_EQ(member.phase, "Running");
  EXPECT_EQ(member.step, 70);
  EXPECT_DOUBLE_EQ(member.telemetry.compute_ms, 25);

  world.told->attempt = 7;
  EXPECT_TRUE(plan(world).status.stragglers.empty()) << "another attempt's";
}

}  // namespace
}  // namespace paceline::plan
