// Restarts of all members, as stories in the model cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process_end.h"
#include "controller/plan/explain.h"
#include "tests/unit/controller/plan/passes.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using api::Phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(RestartTest, AllMembersLeaveAndComeBackAsTheNextAttempt) {
  Observed world = restartable(1, 2);
  let_die(world, Role::kWorker, 1);
  const Plan restart = step(world);
  EXPECT_EQ(restart.status.phase, Phase::kRestarting);
  EXPECT_EQ(restart.status.reason, "Killed");
  EXPECT_THAT(
      restart.status.message,
      HasSubstr(
          "worker-1 (pod fashion-worker-1-0, pid 4001) exited with code 137 at step 120; all members start "
          "again (attempt 1)"));
  EXPECT_EQ(restart.failed_pod->spec.name, "fashion-worker-1-0");
  EXPECT_THAT(true_conditions(restart.status), ElementsAre("Created", "Restarting"));
  EXPECT_THAT(actions_of<DeletePod>(restart), SizeIs(2)) << "the dead one stays for its log";
  EXPECT_THAT(actions_of<CreatePod>(restart), IsEmpty()) << "the attempt is not in the written status yet";
  EXPECT_THAT(actions_of<CreatePod>(plan(world)), IsEmpty()) << "members of the last attempt live";
  advance(world);
  EXPECT_THAT(actions_of<CreatePod>(step(world)), SizeIs(3));
  EXPECT_THAT(names(world), ElementsAre("fashion-worker-1-0", "fashion-chief-0-1", "fashion-worker-0-1",
                                        "fashion-worker-1-1"));
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_THAT(true_conditions(world.job.status), ElementsAre("Created", "Running"));
  const api::Restarts& restarts = world.job.status.restarts;
  EXPECT_EQ(restarts.attempt, 1);
  EXPECT_EQ(restarts.total, 1);
  ASSERT_THAT(restarts.by_cause, SizeIs(1));
  EXPECT_EQ(restarts.by_cause[0], (api::RestartCount{Role::kWorker, api::RestartCause::kKilled, 1}));
}

TEST(RestartTest, TheLastCoordinatorsReportIsNotThePresentOnes) {
  Observed world = restartable(0, 2);
  let_die(world, Role::kWorker, 1);
  JobReport old = *world.report;
  old.phase = ReportPhase::kFailed;
  old.fault.emplace().index = 1;
  step(world);
  advance(world);
  world.report = old;  // the shell has not replaced it yet
  const Plan made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kRestarting);
  EXPECT_THAT(actions_of<CreatePod>(made), SizeIs(2));
}

// The next attempt's view stands before its rank 0 has said where it resumes; so does a view that another
// controller gathers again.
TEST(RestartTest, AViewThatHasJustBegunHasNoProgressYet) {
  Observed world = restartable(0, 2);
  let_die(world, Role::kWorker, 1);
  step(world);
  settle(world);
  ASSERT_EQ(world.report->phase, ReportPhase::kRunning);
  ASSERT_EQ(world.report->attempt, 1);
  EXPECT_EQ(step(world).status.progress.step, 120) << "how far the last attempt came";
  world.report->progress = {.step = 0, .total_steps = 2000};
  EXPECT_EQ(step(world).status.progress.step, 120) << "it still loads the checkpoint";
  world.report->progress = {.step = 100, .total_steps = 2000};
  EXPECT_EQ(step(world).status.progress.step, 100) << "that it resumes from";
}

// A view that goes back to a checkpoint may have to leave before it comes as far as the one before.
TEST(RestartTest, LastWordsTellWhereMembersCameTo) {
  for (const Step told : {130, 100, 0}) {
    Observed world = restartable(0, 2);
    let_die(world, Role::kWorker, 1);
    JobReport last = *world.report;
    step(world);
    ASSERT_EQ(world.job.status.restarts.attempt, last.attempt + 1);
    ASSERT_EQ(world.job.status.progress.step, 120);
    advance(world);
    last.phase = ReportPhase::kFailed;
    last.progress = {.step = told};
    last.checkpoint_path = "/checkpoints/step-000000100";
    world.report = last;
    const Plan made = step(world);
    EXPECT_EQ(made.status.progress.step, told > 0 ? told : 120) << "0: its coordinator never heard";
    EXPECT_EQ(made.status.last_checkpoint, "/checkpoints/step-000000100");
  }
}

TEST(RestartTest, MissingPodIsToldAndRestartsTheRing) {
  Observed world = restartable(1, 2);
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.spec.name == "fashion-worker-1-0"; });
  EXPECT_THAT(plan(world).gone, ElementsAre("fashion-worker-1-0"));
  EXPECT_EQ(plan(world).status.phase, Phase::kRestarting);
}

TEST(RestartTest, LaterAttemptBeginsWhenItsPlacesAreFree) {
  Observed world = restartable(1, 2);
  const std::vector<cluster::Pod> first = world.pods;
  let_die(world, Role::kWorker, 1);
  step(world);
  world.pods = first;
  EXPECT_THAT(actions_of<CreatePod>(plan(world)), IsEmpty());
  world.pods.clear();
  EXPECT_THAT(actions_of<CreatePod>(step(world)), SizeIs(3));
}

TEST(RestartTest, AMemberThatFellSilentWasDeletedWhereTheClusterSaysThatItsPodIsGone) {
  using enum api::FaultKind;
  for (const api::FaultKind kind : {kDead, kFrozen, kUnreachable, kFailed, kDiverged, kMissing}) {
    Observed world = restartable(1, 2);
    world.job.spec.run_policy.backoff_limit = 0;
    world.report->fault = api::Fault{.kind = kind, .role = Role::kWorker, .index = 1};
    world.report->fault_age = 1h;
    const bool silent = kind == kDead || kind == kFrozen || kind == kUnreachable;
    const bool may_be_its_node = silent || kind == kMissing;
    EXPECT_EQ(plan(world).status.reason, may_be_its_node ? "Silent" : "BackoffLimitExceeded")
        << "it is there";
    std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.spec.name == "fashion-worker-1-0"; });
    const Plan made = plan(world);
    EXPECT_EQ(made.status.reason, silent ? "Deleted" : "BackoffLimitExceeded") << explain(made);
    EXPECT_EQ(made.status.fault->kind, silent ? kDeleted : kind);
    world.report->fault->exit_code = 1;
    EXPECT_EQ(plan(world).status.reason, "BackoffLimitExceeded") << "its end was told before";
  }
}

TEST(RestartTest, NeverMeansNever) {
  Observed world = restartable(0, 2, api::RestartPolicy::kNever);
  let_die(world, Role::kWorker, 1, "Evicted");
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, Phase::kFailed);
  EXPECT_THAT(made.status.message, HasSubstr("exited with code 137 (Evicted)"));
}

TEST(RestartTest, TheExitCodeDecides) {
  for (const int code : {1, 127, 128, 255}) {
    Observed world = restartable(0, 2, api::RestartPolicy::kExitCode);
    let_die(world, Role::kWorker, 0, "Error", code);
    const Plan made = plan(world);
    EXPECT_EQ(made.status.phase, code < 128 ? Phase::kFailed : Phase::kRestarting) << code;
    if (code < 128) {
      EXPECT_THAT(made.status.message, HasSubstr("exit codes 1 to 127 are permanent")) << code;
    }
  }
}

// 3 is what our trainer ends with where it is told to leave. Another program's 3 is its own.
TEST(RestartTest, AnExitCodeOfAProgramOfItsOwnHasNoMeaningOfOurs) {
  for (const bool ours : {true, false}) {
    Observed world = restartable(0, 2, api::RestartPolicy::kExitCode);
    world.job.spec.run_policy.backoff_limit = 0;
    if (!ours) world.job.spec.training.reset();
    world.report.reset();
    let_die(world, Role::kWorker, 0, "Error", kExitEnded);
    const Plan made = plan(world);
    EXPECT_EQ(made.status.phase, ours ? Phase::kRestarting : Phase::kFailed) << explain(made);
    if (ours) continue;
    EXPECT_THAT(made.status.message, HasSubstr("exit codes 1 to 127 are permanent"));
  }
}

TEST(RestartTest, WhatIsPermanentIsSaidAsItIs) {
  Observed world = restartable(0, 2, api::RestartPolicy::kExitCode);
  let_die(world, Role::kWorker, 0, "DeadlineExceeded", 137);
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, Phase::kFailed);
  EXPECT_THAT(made.status.message, HasSubstr("ended by its own activeDeadlineSeconds is permanent"));
  EXPECT_THAT(made.status.message, Not(HasSubstr("exit codes")));
}

TEST(RestartTest, TheBackoffLimitEndsIt) {
  Observed world = restartable(0, 2);
  world.job.spec.run_policy.backoff_limit = 2;
  for (int i = 0; i < 2; ++i) {
    let_die(world, Role::kWorker, 1);
    EXPECT_EQ(step(world).status.phase, Phase::kRestarting) << i;
    world.now += world.limits.longest_back_off;
    settle(world);
    EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  }
  let_die(world, Role::kWorker, 0);
  const Plan made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kFailed);
  EXPECT_EQ(made.status.reason, "BackoffLimitExceeded");
  EXPECT_THAT(made.status.message, HasSubstr("started again 2 times already (spec.runPolicy.backoffLimit)"));
  EXPECT_THAT(true_conditions(made.status), ElementsAre("Created", "Failed"));
}

TEST(RestartTest, WhatIsNotTheJobsFaultIsCountedApartAndBounded) {
  Observed world = restartable(0, 2);
  world.job.spec.run_policy.backoff_limit = 0;
  world.limits.disruptions = 3;
  for (const char* reason : {"Evicted", "NodeLost", "Preempting"}) {
    let_die(world, Role::kWorker, 1, reason);
    EXPECT_EQ(step(world).status.phase, Phase::kRestarting) << reason;
    world.now += world.limits.longest_back_off;
    settle(world);
  }
  EXPECT_THAT(world.job.status.restarts.by_cause,
              ElementsAre(api::RestartCount{Role::kWorker, api::RestartCause::kEvicted, 1},
                          api::RestartCount{Role::kWorker, api::RestartCause::kPreempted, 1},
                          api::RestartCount{Role::kWorker, api::RestartCause::kNodeLost, 1}));
  let_die(world, Role::kWorker, 1, "Evicted");
  EXPECT_EQ(plan(world).status.phase, Phase::kFailed) << "three disruptions are the limit here";
  let_die(world, Role::kWorker, 1);
  EXPECT_EQ(plan(world).status.reason, "BackoffLimitExceeded") << "its own failure is charged at once";
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
    EXPECT_EQ(world.job.status.phase, Phase::kRunning) << i;
  }
  EXPECT_THAT(waits, ElementsAre(0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300));
  EXPECT_EQ(world.job.status.restarts.in_a_row, 12);
  let_die(world, Role::kWorker, 0);
  EXPECT_EQ(*plan(world).status.restarts.not_before - world.now, world.limits.longest_back_off);
  world.now += world.limits.healthy_after;
  let_die(world, Role::kWorker, 0);
  EXPECT_EQ(plan(world).status.restarts.not_before, std::nullopt) << "it trained for long";
}

TEST(RestartTest, ADeletedMemberBringsTheRingBack) {
  Observed world = restartable(1, 2);
  pod_of(world, Role::kWorker, 1).deleting = true;
  Plan made = plan(world);
  EXPECT_EQ(made.status.phase, Phase::kRestarting);
  EXPECT_EQ(made.status.reason, "Deleted");
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.deleting; });
  made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kRestarting);
  EXPECT_THAT(made.status.message, HasSubstr("worker-1 (pod fashion-worker-1-0) was deleted"));
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_THAT(world.pods, SizeIs(3));
}

TEST(RestartTest, APodThatIsGoneFailsAJobThatReplacesNobody) {
  for (const bool trains : {true, false}) {
    api::TrainingJob job = make_job(1, 2);
    if (!trains) job.spec.training.reset();
    Observed world = make_running_world(std::move(job));
    pod_of(world, Role::kWorker, 1).deleting = true;
    EXPECT_EQ(plan(world).status.phase, Phase::kRunning) << "its end will tell";
    std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.deleting; });
    const Plan made = plan(world);
    EXPECT_EQ(made.status.phase, Phase::kFailed);
    EXPECT_EQ(made.status.reason, "MemberDeleted");
    EXPECT_THAT(made.status.message, HasSubstr("worker-1 (pod fashion-worker-1-0) was deleted"));
    EXPECT_THAT(actions_of<CreatePod>(made), IsEmpty());
  }
}

TEST(RestartTest, ALostNodesPodIsNotWaitedFor) {
  Observed world = restartable(0, 2);
  cluster::Pod& lost = pod_of(world, Role::kWorker, 1);
  lost.deleting = true;
  lost.reason = "NodeLost";
  EXPECT_EQ(step(world).status.reason, "NodeLost");
  const cluster::Pod stuck = pod_of(world, Role::kWorker, 1);
  advance(world);
  world.pods.push_back(stuck);  // its kubelet does not answer
  EXPECT_THAT(actions_of<CreatePod>(step(world)), SizeIs(2));
}

TEST(RestartTest, OldPodsGoButTheLastAttemptsLogsStay) {
  Observed world = restartable(0, 1);
  for (int i = 0; i < 3; ++i) {
    let_die(world, Role::kWorker, 0);
    step(world);
    world.now += world.limits.longest_back_off;
    settle(world);
  }
  EXPECT_THAT(names(world), ElementsAre("fashion-worker-0-2", "fashion-worker-0-3"));
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
  EXPECT_EQ(made.status.restarts.attempt, 1);
  EXPECT_TRUE(made.requeue_after.has_value());
}

}  // namespace
}  // namespace paceline::plan
