// Restarts, suspension, resizing, clean-up and trouble, as stories in the model cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/attempts.h"
#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using api::Phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// One pass, and what follows from it.
Plan step(Observed& world) {
  const Plan made = plan(world);
  apply(made, world);
  return made;
}

void settle(Observed& world) {
  for (int i = 0; i < 12; ++i) {
    step(world);
    advance(world);
  }
}

Observed restartable(int chiefs, int workers, api::RestartPolicy policy = api::RestartPolicy::kOnFailure) {
  Observed world = make_running_world(chiefs, workers);
  for (auto* spec : {&world.job.spec.replica_specs.chief, &world.job.spec.replica_specs.worker}) {
    if (*spec) (*spec)->restart_policy = policy;
  }
  return world;
}

// The pod that a slot has now, not one of an earlier attempt.
cluster::Pod& member(Observed& world, Role role, int index) {
  return *std::ranges::find_if(world.pods, [&](const cluster::Pod& pod) {
    return pod.spec.role == role && pod.spec.index == index &&
           pod.spec.attempt == wanted_attempt(world.job, role, index);
  });
}

// The verdict's wait is over.
void let_die(Observed& world, Role role, int index, const char* reason = "Error", int code = 137) {
  cluster::Pod& pod = member(world, role, index);
  finish(world, pod, code, world.limits.verdict_grace);
  pod.reason = reason;
}

std::vector<std::string> names(const Observed& world) {
  std::vector<std::string> all;
  for (const cluster::Pod& pod : world.pods) all.push_back(pod.spec.name);
  return all;
}

std::vector<std::string> true_conditions(const api::Status& status) {
  std::vector<std::string> all;
  for (const api::Condition& each : status.conditions) {
    if (each.status) all.push_back(each.type);
  }
  return all;
}

const api::Condition& condition(const api::Status& status, const std::string& type) {
  return *std::ranges::find(status.conditions, type, &api::Condition::type);
}

// ---- restart of the ring

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
  EXPECT_EQ(restart.blamed->spec.name, "fashion-worker-1-0");
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
  old.culprit.emplace().index = 1;
  step(world);
  advance(world);
  world.report = old;  // the shell has not replaced it yet
  const Plan made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kRestarting);
  EXPECT_THAT(actions_of<CreatePod>(made), SizeIs(2));
}

TEST(RestartTest, WhatACopyOfTheListDoesNotShowIsConfirmedBeforeItDecides) {
  Observed world = restartable(1, 2);
  const Observed trains = world;
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.spec.name == "fashion-worker-1-0"; });
  world.pods_may_lag = true;
  EXPECT_EQ(plan(world).confirm, (Confirm{"the pod of worker-1 is not in the list", {"fashion-worker-1-0"}}));
  EXPECT_THAT(plan(world).actions, IsEmpty());
  world.pods_may_lag = false;
  EXPECT_FALSE(plan(world).confirm.has_value());
  EXPECT_EQ(plan(world).status.phase, Phase::kRestarting);
  Observed leaving = trains;  // what is seen needs no second look
  leaving.pods_may_lag = true;
  EXPECT_FALSE(plan(leaving).confirm.has_value());
  member(leaving, Role::kWorker, 1).deleting = true;
  EXPECT_FALSE(plan(leaving).confirm.has_value());
  EXPECT_EQ(plan(leaving).status.phase, Phase::kRestarting);
}

TEST(RestartTest, ALaterAttemptBeginsWhenTheClusterItselfSaysThatItsPlacesAreFree) {
  Observed fresh = make_world(1, 2);
  fresh.pods_may_lag = true;
  EXPECT_FALSE(plan(fresh).confirm.has_value()) << "nobody was there before the first";
  Observed world = restartable(1, 2);
  const std::vector<cluster::Pod> first = world.pods;
  let_die(world, Role::kWorker, 1);
  step(world);
  world.pods.clear();
  world.pods_may_lag = true;
  ASSERT_TRUE(plan(world).confirm.has_value());
  EXPECT_THAT(plan(world).confirm->pods, ElementsAre("fashion-chief-0-0", "fashion-chief-0-2",
                                                     "fashion-worker-0-0", "fashion-worker-1-0"))
      << "the last attempt's, and one of a later attempt, should the job be an old copy";
  Observed unwritten = world;  // its pods were made, and then the controller ended
  unwritten.job.status.members.clear();
  EXPECT_EQ(plan(unwritten).confirm, plan(world).confirm);
  EXPECT_THAT(actions_of<CreatePod>(plan(world)), IsEmpty());
  world.pods_may_lag = false;
  Observed hidden = world;
  hidden.pods = first;
  EXPECT_THAT(actions_of<CreatePod>(plan(hidden)), IsEmpty()) << "it was behind";
  EXPECT_THAT(actions_of<CreatePod>(step(world)), SizeIs(3));
  world.pods_may_lag = true;
  EXPECT_FALSE(plan(world).confirm.has_value()) << "once for an attempt";
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

// ---- suspend, resize

TEST(SuspendTest, ThePodsLeaveAndANewAttemptComesBack) {
  Observed world = make_running_world(1, 2);
  world.job.spec.run_policy.active_deadline_seconds = 3600;
  world.job.spec.run_policy.suspend = true;
  Plan made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kSuspended);
  EXPECT_THAT(true_conditions(made.status), ElementsAre("Created", "Suspended"));
  EXPECT_EQ(made.status.start_time, std::nullopt);
  ASSERT_THAT(actions_of<DeletePod>(made), SizeIs(3));
  EXPECT_EQ(actions_of<DeletePod>(made)[0].grace, world.limits.save_grace) << "the chief saves";
  EXPECT_EQ(actions_of<DeletePod>(made)[1].grace, world.limits.stop_grace);
  EXPECT_EQ(made.status.replica_statuses[1].active, 2);
  settle(world);
  EXPECT_THAT(world.pods, IsEmpty());
  EXPECT_EQ(world.job.status.replica_statuses[1].active, 0);
  world.now += 2h;
  EXPECT_THAT(plan(world).actions, IsEmpty()) << "the deadline's clock stands";
  world.job.spec.run_policy.suspend = false;
  made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kStarting);
  EXPECT_EQ(made.status.start_time, world.now) << "the deadline counts anew";
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_THAT(names(world), ElementsAre("fashion-chief-0-1", "fashion-worker-0-1", "fashion-worker-1-1"));
  EXPECT_EQ(world.job.status.restarts.total, 0) << "a resumption is no restart";
  EXPECT_FALSE(condition(world.job.status, "Suspended").status);
}

TEST(SuspendTest, AJobMayBeginSuspended) {
  Observed world = make_world(0, 2);
  world.job.spec.run_policy.suspend = true;
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kSuspended);
  EXPECT_THAT(world.pods, IsEmpty());
  EXPECT_EQ(world.job.status.restarts.attempt, 0);
  world.job.spec.run_policy.suspend = false;
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_THAT(names(world), ElementsAre("fashion-worker-0-0", "fashion-worker-1-0"));
}

TEST(SuspendTest, NoNewPodWhileAnOldOneLives) {
  Observed world = make_running_world(0, 2);
  world.job.spec.run_policy.suspend = true;
  step(world);
  world.job.spec.run_policy.suspend = false;
  EXPECT_THAT(actions_of<CreatePod>(step(world)), IsEmpty()) << "resumed before they left";
  advance(world);
  EXPECT_THAT(actions_of<CreatePod>(step(world)), SizeIs(2));
}

TEST(SuspendTest, ATrainingThatIsOverEndsWell) {
  Observed world = make_running_world(0, 1);
  world.report->phase = ReportPhase::kFinished;
  finish(world, world.pods[0], 0);
  world.job.spec.run_policy.suspend = true;
  EXPECT_EQ(plan(world).status.phase, Phase::kSucceeded);
}

TEST(ResizeTest, TheRingStartsAgainInItsNewSize) {
  for (const int workers : {1, 4}) {
    Observed world = make_running_world(1, 2);
    world.job.spec.replica_specs.worker->replicas = workers;
    const Plan made = step(world);
    EXPECT_EQ(made.status.phase, Phase::kRestarting);
    EXPECT_EQ(made.status.reason, "Resized");
    EXPECT_THAT(made.status.message, HasSubstr("had 3 members and shall have"));
    ASSERT_THAT(actions_of<RecordEvent>(made), SizeIs(1));
    EXPECT_FALSE(actions_of<RecordEvent>(made)[0].event.warning) << "somebody asked for it";
    settle(world);
    EXPECT_EQ(world.job.status.phase, Phase::kRunning);
    EXPECT_THAT(world.pods, SizeIs(1 + workers));
    EXPECT_EQ(world.job.status.restarts.in_a_row, 0);
    EXPECT_EQ(world.job.status.restarts.total, 0) << "who asks for another size restarts nothing";
    EXPECT_THAT(world.job.status.restarts.by_cause,
                ElementsAre(api::RestartCount{Role::kWorker, api::RestartCause::kResized, 1}));
    EXPECT_EQ(plan(world).status.restarts, world.job.status.restarts);
  }
}

// ---- who manages the job, and its end

TEST(ManagedByTest, SomebodyElsesJobIsLeftAlone) {
  Observed world = make_world(0, 2);
  world.job.spec.run_policy.managed_by = "kueue.x-k8s.io/multikueue";
  world.deleted = true;
  const Plan made = plan(world);
  EXPECT_THAT(made.actions, IsEmpty());
  EXPECT_EQ(made.status, world.job.status);
  EXPECT_FALSE(made.done);
  EXPECT_EQ(made.requeue_after, std::nullopt);
  world.deleted = false;
  world.job.spec.run_policy.managed_by = std::string(api::kManager);
  EXPECT_THAT(actions_of<CreatePod>(plan(world)), SizeIs(2));
}

TEST(TtlTest, TheJobIsDeletedWhenItHasLainLongEnough) {
  Observed world = make_running_world(0, 1);
  world.job.spec.run_policy.ttl_seconds_after_finished = 60;
  world.report->phase = ReportPhase::kFinished;
  finish(world, world.pods[0], 0);
  EXPECT_EQ(step(world).status.phase, Phase::kSucceeded);
  world.now += 20s;
  EXPECT_EQ(plan(world).requeue_after, 40s);
  EXPECT_THAT(plan(world).actions, IsEmpty());
  world.now += 40s;
  const auto deletions = actions_of<DeleteJob>(plan(world));
  ASSERT_THAT(deletions, SizeIs(1));
  EXPECT_EQ(deletions[0].uid, "job-uid");
  EXPECT_EQ(deletions[0].name, "fashion");
}

TEST(CleanPodPolicyTest, SaysWhatStays) {
  struct Case {
    api::CleanPodPolicy policy;
    std::size_t deleted;
  };
  for (const Case& c : {Case{api::CleanPodPolicy::kRunning, 1}, Case{api::CleanPodPolicy::kAll, 3},
                        Case{api::CleanPodPolicy::kNone, 0}}) {
    Observed world = make_running_world(0, 3);
    world.job.spec.run_policy.clean_pod_policy = c.policy;
    finish(world, world.pods[0], 1, 10s);
    finish(world, world.pods[1], 0, 10s);
    const Plan made = step(world);
    EXPECT_EQ(made.status.phase, Phase::kFailed);
    EXPECT_THAT(actions_of<DeletePod>(made), SizeIs(c.deleted)) << api::name(c.policy);
    advance(world);
    EXPECT_TRUE(plan(world).done) << api::name(c.policy);
    EXPECT_THAT(plan(world).actions, IsEmpty());
  }
}

// ---- beside the ring

Observed with_ps_and_evaluator(api::RestartPolicy policy) {
  Observed world = make_world(0, 2);
  world.job.spec.training.reset();  // with it servers are members
  world.job.spec.replica_specs.ps = api::ReplicaSpec{1, policy, {}};
  world.job.spec.replica_specs.evaluator = api::ReplicaSpec{1, policy, {}};
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_THAT(world.pods, SizeIs(4));
  return world;
}

TEST(BesideTest, NeitherFailsTheJobNorKeepsItFromSucceeding) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kNever);
  finish(world, pod_of(world, Role::kEvaluator, 0), 1, 60s);
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_EQ(world.job.status.replica_statuses[2].failed, 1);
  world.report->phase = ReportPhase::kFinished;
  for (const int index : {0, 1}) finish(world, pod_of(world, Role::kWorker, index), 0);
  const Plan made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kSucceeded) << "the server still runs";
  ASSERT_THAT(actions_of<DeletePod>(made), SizeIs(1));
  EXPECT_EQ(actions_of<DeletePod>(made)[0].name, "fashion-ps-0-0");
  advance(world);
  EXPECT_TRUE(plan(world).done);
}

TEST(BesideTest, AServerIsReplacedAloneAsOftenAsItMayBe) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kOnFailure);
  world.job.spec.run_policy.backoff_limit = 2;
  for (int i = 0; i < 5; ++i) {
    finish(world, member(world, Role::kServer, 0), 1, 60s);
    settle(world);
    if (i >= 2) break;
    EXPECT_EQ(world.job.status.restarts.replacements[0].count, i + 1);
  }
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_EQ(world.job.status.restarts.attempt, 0) << "the ring was left alone";
  EXPECT_EQ(world.job.status.restarts.total, 2);
  EXPECT_THAT(world.job.status.restarts.replacements, ElementsAre(api::Replacement{Role::kServer, 0, 2}));
}

TEST(BesideTest, AfterAResumptionNoNameIsUsedAgain) {
  Observed world = with_ps_and_evaluator(api::RestartPolicy::kOnFailure);
  finish(world, pod_of(world, Role::kServer, 0), 137, 60s);
  settle(world);
  world.job.spec.run_policy.suspend = true;
  settle(world);
  world.job.spec.run_policy.suspend = false;
  settle(world);
  std::vector<std::string> live;
  for (const cluster::Pod& pod : world.pods) {
    if (!pod.ended()) live.push_back(pod.spec.name);
  }
  EXPECT_THAT(live, ::testing::UnorderedElementsAre("fashion-worker-0-1", "fashion-worker-1-1",
                                                    "fashion-ps-0-2", "fashion-evaluator-0-1"));
}

// ---- what keeps pods from running

TEST(TroubleTest, TheClustersWordsAreShown) {
  Observed world = make_world(0, 2);
  world.limits.create_failures = 0;
  step(world);
  pod_of(world, Role::kWorker, 1).reason = "Unschedulable";
  pod_of(world, Role::kWorker, 1).message = "0/2 nodes are available: 2 Insufficient nvidia.com/gpu";
  Plan made = step(world);
  EXPECT_EQ(made.status.phase, Phase::kStarting);
  EXPECT_EQ(made.status.reason, "Unschedulable");
  EXPECT_THAT(made.status.message, HasSubstr("worker-1 (pod fashion-worker-1-0) does not start: 0/2 nodes"));
  EXPECT_EQ(condition(made.status, "Running").message, made.status.message);
  EXPECT_FALSE(condition(made.status, "Running").status);
  EXPECT_THAT(actions_of<RecordEvent>(made), SizeIs(1));
  EXPECT_THAT(step(world).actions, IsEmpty()) << "once";
  pod_of(world, Role::kWorker, 1).reason = "ContainerCreating";
  EXPECT_EQ(step(world).status.reason, "CreatingPods");
  world.create_failure =
      CreateFailure{50, "fashion-worker-0-0", "exceeded quota: compute, requested: pods=1"};
  made = step(world);
  EXPECT_EQ(made.status.reason, "PodNotCreated");
  EXPECT_THAT(condition(made.status, "Running").message, HasSubstr("exceeded quota: compute"));
  world.create_failure.reset();
  settle(world);
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  EXPECT_EQ(world.job.status.reason, "MembersTrain");
}

TEST(ConditionsTest, CarryTheGenerationTheyAreAbout) {
  Observed world = make_world(0, 1);
  world.generation = SpecGeneration{7};
  settle(world);
  EXPECT_EQ(world.job.status.observed_generation.value, 7);
  EXPECT_EQ(condition(world.job.status, "Running").observed_generation.value, 7);
}

}  // namespace
}  // namespace paceline::plan
