#include "controller/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/text.h"
#include "controller/plan/explain.h"
#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(PlanTest, AFreshJobGetsItsPods) {
  const Observed world = make_world(1, 3);
  const Plan made = plan(world);
  const auto created = actions_of<CreatePod>(made);
  ASSERT_THAT(created, SizeIs(4));
  EXPECT_EQ(created[0].spec.name, "fashion-chief-0-0");
  EXPECT_EQ(created[3].spec.name, "fashion-worker-2-0");
  EXPECT_EQ(made.status.phase, api::Phase::kStarting);
  EXPECT_EQ(made.status.start_time, world.now);
  EXPECT_FALSE(made.done);
}

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

TEST(PlanTest, NothingToDoForAJobThatRuns) {
  const Observed world = make_running_world(1, 3);
  const Plan made = plan(world);
  EXPECT_THAT(made.actions, IsEmpty());
  EXPECT_EQ(made.status.phase, api::Phase::kRunning);
  EXPECT_EQ(made.status.view.generation.value, 1u);
  EXPECT_EQ(made.status.view.size, 4);
  EXPECT_THAT(made.status.members, SizeIs(4));
  EXPECT_EQ(made.status.members[2].rank, 2);
  EXPECT_EQ(made.status.members[2].phase, "Training");
  EXPECT_EQ(made.status.members[2].step, 120);
  EXPECT_EQ(made.status.progress.step, 120);
  EXPECT_EQ(made.requeue_after, world.limits.refresh);
}

TEST(PlanTest, WithoutACoordinatorAJobRunsWhenItsPodsDo) {
  Observed world = make_world(0, 2);
  world.report.reset();
  apply(plan(world), world);
  EXPECT_EQ(world.job.status.phase, api::Phase::kStarting);
  advance(world);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kRunning);
  for (cluster::Pod& pod : world.pods) finish(world, pod, 0);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kSucceeded);
}

TEST(PlanTest, WithoutACoordinatorAMemberThatIsSoonDoneIsNotWaitedForToRun) {
  Observed world = make_world(0, 2);
  world.report.reset();
  apply(plan(world), world);
  advance(world);
  cluster::Pod& slow = pod_of(world, Role::kWorker, 0);
  slow.phase = cluster::PodPhase::kPending;
  finish(world, pod_of(world, Role::kWorker, 1), 0);
  apply(plan(world), world);
  EXPECT_EQ(world.job.status.phase, api::Phase::kStarting);
  slow.phase = cluster::PodPhase::kRunning;
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kRunning);
  EXPECT_EQ(made.status.message, "1 pod runs, 1 has finished");
}

TEST(PlanTest, AJobThatHasEndedHasNoTimeToGo) {
  Observed world = make_running_world(1, 1);
  world.report->progress.eta_seconds = 12;
  EXPECT_TRUE(plan(world).status.progress.eta_seconds.has_value());
  world.report->phase = ReportPhase::kFailed;
  const Plan made = plan(world);
  ASSERT_EQ(made.status.phase, api::Phase::kFailed);
  EXPECT_FALSE(made.status.progress.eta_seconds.has_value());
}

// ---- stop and delete

TEST(PlanTest, StoppingDeletesInOrderThenAtOnce) {
  Observed world = make_running_world(1, 2);
  world.stop = Stop::kOrderly;
  Plan made = plan(world);
  auto deleted = actions_of<DeletePod>(made);
  ASSERT_THAT(deleted, SizeIs(3));
  EXPECT_EQ(deleted[0].grace, world.limits.save_grace) << "the chief saves";
  EXPECT_EQ(deleted[1].grace, world.limits.stop_grace);
  EXPECT_FALSE(deleted[0].uid.empty());
  EXPECT_EQ(made.status.phase, api::Phase::kFailed);
  EXPECT_EQ(made.status.reason, "Stopped");
  EXPECT_EQ(made.status.message, "the user stops the job");
  EXPECT_FALSE(made.done);
  apply(made, world);
  EXPECT_THAT(actions_of<DeletePod>(plan(world)), IsEmpty()) << "they are being deleted";
  world.stop = Stop::kNow;
  deleted = actions_of<DeletePod>(plan(world));
  ASSERT_THAT(deleted, SizeIs(3));
  EXPECT_EQ(deleted[0].grace, 0s);
  advance(world);
  made = plan(world);
  EXPECT_TRUE(made.done);
  EXPECT_THAT(made.actions, IsEmpty());
  EXPECT_EQ(made.status.members[0].phase, "Deleted");
}

TEST(PlanTest, AJobStoppedBeforeItBeganIsDone) {
  Observed world = make_world(1, 2);
  world.stop = Stop::kOrderly;
  const Plan made = plan(world);
  EXPECT_TRUE(made.done);
  EXPECT_THAT(actions_of<CreatePod>(made), IsEmpty());
  EXPECT_EQ(made.status.phase, api::Phase::kFailed);
}

TEST(PlanTest, ADeletedJobLosesItsPods) {
  Observed world = make_running_world(1, 2);
  world.deleted = true;
  EXPECT_THAT(actions_of<DeletePod>(plan(world)), SizeIs(3));
}

TEST(PlanTest, StoppingAJobThatIsOverLetsItSucceed) {
  Observed world = make_running_world(0, 2);
  world.report->phase = ReportPhase::kFinished;
  world.stop = Stop::kOrderly;
  EXPECT_EQ(plan(world).status.phase, api::Phase::kSucceeded);
}

// ---- deadline

TEST(PlanTest, TheDeadline) {
  Observed world = make_running_world(0, 2);
  world.job.spec.run_policy.active_deadline_seconds = 600;
  world.now = *world.job.status.start_time + 599'500ms;
  EXPECT_EQ(plan(world).requeue_after, 500ms);
  world.now += 500ms;
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kFailed);
  EXPECT_EQ(made.status.reason, "DeadlineExceeded");
  EXPECT_THAT(actions_of<DeletePod>(made), SizeIs(2));
  world.report->phase = ReportPhase::kFinished;
  EXPECT_NE(plan(world).status.phase, api::Phase::kFailed) << "training was over in time";
}

// ---- how long pods have to end

TEST(PlanTest, TheTemplateSaysHowLongItsPodsMayTakeToEndInOrder) {
  Observed world = make_running_world(1, 2);
  world.job.spec.replica_specs.worker->termination_grace_seconds = 90;
  const auto graces = [](const Observed& observed) {
    std::vector<Duration> all;
    for (const DeletePod& deleted : actions_of<DeletePod>(plan(observed))) all.push_back(deleted.grace);
    return all;
  };
  world.stop = Stop::kOrderly;
  EXPECT_THAT(graces(world), ElementsAre(world.limits.save_grace, 90s, 90s));
  world.job.spec.replica_specs.chief->termination_grace_seconds = 20;
  world.job.spec.replica_specs.worker->termination_grace_seconds = 0;
  EXPECT_THAT(graces(world), ElementsAre(20s, 1s, 1s)) << "its name is not freed while it may run";
  world.stop = Stop::kNow;
  EXPECT_THAT(graces(world), ElementsAre(0s, 0s, 0s));
  world.stop = Stop::kNo;
  world.job.spec.replica_specs.worker->termination_grace_seconds = 90;
  kill(world, pod_of(world, Role::kWorker, 1), SIGKILL, world.limits.verdict_grace);
  EXPECT_THAT(graces(world), ElementsAre(20s, world.limits.failure_grace)) << "a victim has nothing to save";
}

// ---- failure

TEST(PlanTest, TheLeaderHasTimeToSaveUnlessItIsToBlameOrTrainsNot) {
  const auto graces = [](const std::function<void(Observed&)>& change) {
    Observed world = make_running_world(1, 2);
    kill(world, pod_of(world, Role::kWorker, 1), SIGKILL, world.limits.verdict_grace);
    change(world);
    std::map<std::string, Duration> by_pod;
    for (const DeletePod& deleted : actions_of<DeletePod>(plan(world))) by_pod[deleted.name] = deleted.grace;
    return by_pod;
  };
  const Limits limits;
  const auto chief = [&](const std::function<void(Observed&)>& change) {
    return graces(change).at("fashion-chief-0-0");
  };
  EXPECT_EQ(chief([](Observed&) {}), limits.save_grace);
  EXPECT_EQ(graces([](Observed&) {}).at("fashion-worker-0-0"), limits.failure_grace);
  EXPECT_EQ(chief([](Observed& world) { world.report->members[0].rank = -1; }), limits.failure_grace);
  EXPECT_EQ(chief([](Observed& world) { world.report.reset(); }), limits.failure_grace);
  const auto at_fault = [&](api::FaultKind kind) {
    return chief(
        [kind](Observed& world) { world.report->fault = api::Fault{.kind = kind, .role = Role::kChief}; });
  };
  EXPECT_EQ(at_fault(api::FaultKind::kFrozen), limits.failure_grace);
  EXPECT_EQ(at_fault(api::FaultKind::kUnreachable), limits.save_grace)
      << "its peers wait in vain while it saves";
}

TEST(PlanTest, AKilledPodFailsTheJobWhenNoVerdictComes) {
  Observed world = make_running_world(1, 2);
  kill(world, pod_of(world, Role::kWorker, 1), SIGKILL);
  Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kRunning) << "the coordinator may know better";
  EXPECT_LE(made.requeue_after, world.limits.verdict_grace);
  EXPECT_THAT(made.actions, IsEmpty());
  world.now += world.limits.verdict_grace - std::chrono::milliseconds(1);
  made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kRunning);
  EXPECT_EQ(made.requeue_after, std::chrono::milliseconds(1));
  world.now += std::chrono::milliseconds(1);
  made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kFailed);
  EXPECT_EQ(made.status.reason, "MemberKilled");
  EXPECT_EQ(made.status.message,
            "worker-1 (pod fashion-worker-1-0, pid 4001) was killed by signal 9 (SIGKILL) at step 120");
  ASSERT_TRUE(made.failed_pod.has_value());
  EXPECT_EQ(made.failed_pod->spec.name, "fashion-worker-1-0");
  EXPECT_THAT(actions_of<DeletePod>(made), SizeIs(2)) << "the dead one stays for its log";
  ASSERT_THAT(actions_of<RecordEvent>(made), SizeIs(1));
  EXPECT_TRUE(actions_of<RecordEvent>(made)[0].event.warning);
  EXPECT_EQ(actions_of<RecordEvent>(made)[0].event.job_uid, world.job_uid);
}

TEST(PlanTest, AVerdictWaitsForTheExitStatusOnlyBriefly) {
  Observed world = make_running_world(1, 2);
  world.report->fault = api::Fault{.role = Role::kWorker, .index = 0};
  world.report->fault_age = 100ms;
  world.report->phase = ReportPhase::kFailed;
  EXPECT_EQ(plan(world).requeue_after, 600ms);
  kill(world, pod_of(world, Role::kWorker, 0), SIGBUS);
  EXPECT_THAT(plan(world).status.message,
              HasSubstr("killed by signal 7 (SIGBUS), as it happens where a mapped file"));
  pod_of(world, Role::kWorker, 0).phase = cluster::PodPhase::kRunning;
  world.report->fault_age = 700ms;
  EXPECT_EQ(plan(world).status.reason, "MemberDied");
  world.report->fault_age = 0ms;
  world.report->fault->kind = api::FaultKind::kFrozen;
  EXPECT_EQ(plan(world).status.reason, "MemberFrozen") << "a frozen process ends only when we end it";
}

TEST(PlanTest, TheVerdictBeatsTheFirstExit) {
  Observed world = make_running_world(1, 2);
  finish(world, pod_of(world, Role::kChief, 0), 1, 1s);
  const api::Victim victim{Role::kChief, 0, {api::ObservationKind::kLostLink, "worker-1"}};
  world.report->fault =
      api::Fault{.kind = api::FaultKind::kFrozen, .role = Role::kWorker, .index = 1, .victims = {victim}};
  const Plan made = plan(world);
  EXPECT_EQ(made.failed_pod->spec.name, "fashion-worker-1-0");
  EXPECT_EQ(made.status.message,
            "worker-1 (pod fashion-worker-1-0, pid 4001) stopped answering at step 120; as a consequence "
            "chief-0 lost its link to worker-1");
  EXPECT_THAT(made.status.fault->victims, ElementsAre(victim));
}

TEST(PlanTest, ACommandThatCannotStartFailsAtOnce) {
  Observed world = make_world(0, 2);
  apply(plan(world), world);
  finish(world, world.pods[0], 127);
  world.pods[0].reason = "StartError";
  world.pods[0].message = "no such file";
  const Plan made = plan(world);
  EXPECT_EQ(made.status.reason, "MemberNotStarted");
  EXPECT_EQ(made.status.phase, api::Phase::kFailed);
}

TEST(PlanTest, TheCoordinatorMayFailTheJobByItself) {
  Observed world = make_running_world(0, 2);
  world.report->phase = ReportPhase::kFailed;
  world.report->reason = "loss is not finite";
  const Plan made = plan(world);
  EXPECT_EQ(made.status.reason, "TrainingFailed");
  EXPECT_THAT(made.status.message, HasSubstr("step 120: loss is not finite"));
}

TEST(PlanTest, PodsThatCannotBeCreatedFailTheJob) {
  Observed world = make_world(0, 2);
  world.create_failure = CreateFailure{4, "fashion-worker-0-0", "the disk is full"};
  EXPECT_THAT(actions_of<CreatePod>(plan(world)), SizeIs(2)) << "it is tried again";
  world.create_failure->count = 5;
  const Plan made = plan(world);
  EXPECT_EQ(made.status.reason, "PodNotCreated");
  EXPECT_THAT(made.status.message, HasSubstr("the disk is full"));
  EXPECT_TRUE(made.done);
}

TEST(PlanTest, APodThatNeverJoinsFailsTheJob) {
  Observed world = make_world(0, 2);
  apply(plan(world), world);
  advance(world);
  advance(world);
  std::erase_if(world.report->members, [](const auto& member) { return member.index == 1; });
  world.report->phase = ReportPhase::kForming;
  world.report->generation.value = 0;
  note_pod_observations(world);
  const auto pass = [&](Duration time) {
    world.now += time;
    world.report->in_phase += time;
  };
  pass(world.limits.attach_timeout - 1s);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kStarting);
  pass(1s);
  const Plan made = plan(world);
  EXPECT_EQ(made.status.reason, "MemberMissing");
  EXPECT_THAT(made.status.message, HasSubstr("worker-1"));
  EXPECT_THAT(made.status.message, HasSubstr("can't reach PACELINE_COORDINATOR (127.0.0.1:1234)"));
}

TEST(PlanTest, APodWhoseTokenIsRefusedIsNotWaitedFor) {
  Observed world = make_world(0, 2);
  apply(plan(world), world);
  advance(world);
  advance(world);
  world.report->phase = ReportPhase::kForming;
  world.report->generation.value = 0;
  world.report->members.clear();
  world.report->refused = {"an earlier job's pod"};
  EXPECT_EQ(plan(world).status.phase, api::Phase::kStarting);
  world.report->refused.push_back(pod_of(world, Role::kWorker, 1).uid);
  const Plan made = plan(world);
  EXPECT_EQ(made.status.reason, "MemberRefused");
  EXPECT_THAT(made.status.message, HasSubstr("worker-1 (pod fashion-worker-1-0"));
}

TEST(PlanTest, WhatSomebodyHasMadeUnknownIsSaidAgain) {
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

TEST(PlanTest, MembersOfAnEarlierControllerHaveTimeToComeBack) {
  Observed world = make_running_world(0, 2);
  world.report = JobReport{};
  world.now += 1h;
  note_pod_observations(world);
  Plan made = plan(world);
  EXPECT_EQ(made.status.phase, api::Phase::kRunning);
  EXPECT_TRUE(actions_of<DeletePod>(made).empty());
  world.now += world.limits.attach_timeout;
  world.report->in_phase = world.limits.attach_timeout;
  made = plan(world);
  EXPECT_EQ(made.status.reason, "MemberMissing");
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

TEST(PlanTest, ACheckpointThatCantBeWrittenIsSaidOnceUntilOneIs) {
  Observed world = make_running_world(1, 1);
  const auto condition = [&] {
    const auto& all = world.job.status.conditions;
    const auto found = std::ranges::find(all, "CheckpointFailed", &api::Condition::type);
    return found == all.end() ? std::string("none")
                              : str_cat(found->status ? "true: " : "false: ", found->message);
  };
  const auto warnings = [](const Plan& plan) {
    std::vector<std::string> reasons;
    for (const RecordEvent& each : actions_of<RecordEvent>(plan)) reasons.push_back(each.event.reason);
    return reasons;
  };
  world.report->last_save = LastSave{100, ""};
  apply(plan(world), world);
  EXPECT_EQ(condition(), "none");
  for (const Step step : {200, 300}) {
    world.report->last_save =
        LastSave{step, str_cat("checkpoint of step ", step, ": write x: No space left")};
    const Plan made = plan(world);
    EXPECT_THAT(warnings(made), step == 200 ? SizeIs(1) : SizeIs(0));
    EXPECT_EQ(made.status.phase, api::Phase::kRunning);
    apply(made, world);
    EXPECT_EQ(condition(),
              "true: checkpoint of step 200: write x: No space left; earlier checkpoints are kept");
  }
  world.report->last_save.reset();  // of a new coordinator
  apply(plan(world), world);
  EXPECT_THAT(condition(), HasSubstr("true: "));
  world.report->last_save = LastSave{400, ""};
  const Plan made = plan(world);
  EXPECT_THAT(warnings(made), ElementsAre("CheckpointSaved"));
  apply(made, world);
  EXPECT_EQ(condition(), "false: the checkpoint of step 400 is written");
}

TEST(PlanTest, WhatAGpuHasCountedStaysWhenNobodyTellsOfItAnyMore) {
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

TEST(PlanTest, ConditionsTellTheStory) {
  Observed world = make_running_world(0, 1);
  world.report->phase = ReportPhase::kFinished;
  finish(world, world.pods[0], 0);
  const api::Status status = plan(world).status;
  ASSERT_THAT(status.conditions, SizeIs(3));
  EXPECT_EQ(status.conditions[1].type, "Running");
  EXPECT_FALSE(status.conditions[1].status);
  EXPECT_EQ(status.conditions[1].last_transition, world.now);
  EXPECT_EQ(status.conditions[2].type, "Succeeded");
  EXPECT_TRUE(status.conditions[2].status);
}

}  // namespace
}  // namespace paceline::plan
