// Members whose work is done before the job's is: the chief may still write its model. What becomes of their
// pods then is no loss, and no reason to bring them back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "controller/plan/explain.h"
#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using api::Phase;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr api::RestartPolicy kPolicies[] = {api::RestartPolicy::kNever, api::RestartPolicy::kOnFailure,
                                            api::RestartPolicy::kAlways, api::RestartPolicy::kExitCode};

api::TrainingJob with_policy(api::TrainingJob job, api::RestartPolicy policy) {
  auto& roles = job.spec.replica_specs;
  for (auto* replica : {&roles.chief, &roles.worker, &roles.ps, &roles.evaluator}) {
    if (*replica) (*replica)->restart_policy = policy;
  }
  return job;
}

// Its own program, without a coordinator.
Observed make_commands_world(api::TrainingJob job) {
  job.spec.training.reset();
  Observed world = make_world(std::move(job));
  world.report.reset();
  for (int i = 0; i < 4; ++i) {
    apply(plan(world), world);
    advance(world);
  }
  EXPECT_EQ(world.job.status.phase, Phase::kRunning);
  return world;
}

void say_finished(Observed& world, Role role, int index) {
  for (ReportedMember& member : world.report->members)
    member.finished = member.finished || (member.role == role && member.index == index);
}

void remove(Observed& world, const std::string& pod) {
  EXPECT_EQ(std::erase_if(world.pods, [&](const cluster::Pod& each) { return each.spec.name == pod; }), 1u);
}

void new_coordinator(Observed& world) {
  if (world.report) world.report = JobReport{};
}

// The node ended the pod: how its process ended is told (a code, or minus a signal), or is not.
void disrupt(Observed& world, cluster::Pod& pod, std::optional<int> how, const char* reason = "Evicted") {
  pod.phase = cluster::PodPhase::kFailed;
  pod.reason = reason;
  pod.exit_code.reset();
  pod.signal.reset();
  if (how && *how < 0) pod.signal = -*how;
  if (how && *how >= 0) pod.exit_code = *how;
  pod.finished = world.now - world.limits.verdict_grace;  // nobody waits for a verdict any more
  world.seen[pod.uid] = {pod.phase, *pod.finished};
}

// Nothing is done for the job; it trains.
void expect_untouched(Observed& world, const std::string& when) {
  const Plan made = plan(world);
  EXPECT_THAT(made.actions, IsEmpty()) << when << "\n" << explain(made);
  EXPECT_EQ(made.status.phase, Phase::kRunning) << when << "\n" << explain(made);
  EXPECT_EQ(made.status.restarts.total, 0) << when;
  apply(made, world);
}

// A user, or a node's garbage collector, deletes the pod of a worker that has ended well.
TEST(FinishedTest, ADeletedPodOfAFinishedWorkerIsNoLoss) {
  for (const api::RestartPolicy policy : kPolicies) {
    for (const bool trains : {true, false}) {
      SCOPED_TRACE(::testing::Message() << api::name(policy) << (trains ? "" : ", own command"));
      const api::TrainingJob job = with_policy(make_job(1, 2), policy);
      Observed world = trains ? make_running_world(job) : make_commands_world(job);
      finish(world, pod_of(world, Role::kWorker, 1), 0);
      expect_untouched(world, "it has ended");
      pod_of(world, Role::kWorker, 1).deleting = true;
      expect_untouched(world, "it is being deleted");
      remove(world, "fashion-worker-1-0");
      expect_untouched(world, "it is gone");
      EXPECT_EQ(world.job.status.members.back().phase, "Succeeded") << "its last word";
      new_coordinator(world);
      expect_untouched(world, "another controller took over");
      finish(world, pod_of(world, Role::kChief, 0), 0);
      finish(world, pod_of(world, Role::kWorker, 0), 0);
      EXPECT_EQ(plan(world).status.phase, Phase::kSucceeded);
    }
  }
}

// It has said goodbye, and its process is about to end; nobody sees how it ends.
TEST(FinishedTest, TheCoordinatorKnowsWhoHasFinishedBeforeThePodsEnd) {
  for (const api::RestartPolicy policy : kPolicies) {
    SCOPED_TRACE(api::name(policy));
    Observed world = make_running_world(with_policy(make_job(1, 2), policy));
    say_finished(world, Role::kWorker, 1);
    expect_untouched(world, "it has finished");
    pod_of(world, Role::kWorker, 1).deleting = true;
    expect_untouched(world, "it is being deleted");
    EXPECT_EQ(world.job.status.members.back().phase, kFinishedPhase);
    Observed killed = world;
    kill(killed, pod_of(killed, Role::kWorker, 1), SIGTERM);
    expect_untouched(killed, "the deletion came before its own end");
    remove(world, "fashion-worker-1-0");
    expect_untouched(world, "it is gone");
    new_coordinator(world);
    expect_untouched(world, "another controller took over");
  }
}

// Whoever looks at the job later, and whatever becomes of worker 1's pod.
void expect_untouched_for_good(Observed& world) {
  new_coordinator(world);
  expect_untouched(world, "another controller took over");
  pod_of(world, Role::kWorker, 1).deleting = true;
  expect_untouched(world, "it is being deleted");
  remove(world, "fashion-worker-1-0");
  expect_untouched(world, "it is gone");
}

TEST(FinishedTest, AnotherControllerFindsItInTheStatusThoughThePodStillRuns) {
  Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kOnFailure));
  say_finished(world, Role::kWorker, 1);
  expect_untouched(world, "it has finished");
  expect_untouched_for_good(world);
}

// A program of its own may end well because it is asked to.
TEST(FinishedTest, WhoEndsWellOnlyBecauseItIsDeletedHasNotFinished) {
  for (const Role role : {Role::kChief, Role::kWorker}) {
    Observed world = make_commands_world(with_policy(make_job(1, 2), api::RestartPolicy::kNever));
    cluster::Pod& pod = pod_of(world, role, 0);
    pod.deleting = true;
    apply(plan(world), world);
    finish(world, pod, 0);
    const std::string name = pod.spec.name;
    const Plan ended = plan(world);
    EXPECT_EQ(ended.status.phase, Phase::kRunning) << explain(ended);
    apply(ended, world);
    remove(world, name);
    EXPECT_EQ(plan(world).status.reason, "MemberDeleted");
  }
}

// The built-in trainer ends with code 0 only when training is over.
TEST(FinishedTest, ATrainerThatEndsWellHasFinishedWhoeverDeletesIt) {
  Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kNever));
  finish(world, pod_of(world, Role::kWorker, 1), 0);
  pod_of(world, Role::kWorker, 1).deleting = true;
  expect_untouched(world, "both at once");
  remove(world, "fashion-worker-1-0");
  expect_untouched(world, "it is gone");
}

TEST(FinishedTest, WhoCrashesAfterItHasFinishedIsStillBlamed) {
  Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kNever));
  say_finished(world, Role::kWorker, 1);
  apply(plan(world), world);
  kill(world, pod_of(world, Role::kWorker, 1), SIGSEGV, world.limits.verdict_grace);
  EXPECT_EQ(plan(world).status.reason, "MemberKilled");
}

// Its process has ended well; then its sidecar fails, or its node is drained.
TEST(FinishedTest, WhoHasEndedWellIsNotLostWhenItsPodFailsLater) {
  for (const api::RestartPolicy policy : kPolicies) {
    for (const bool trains : {true, false}) {
      for (const char* reason : {"Error", "Evicted"}) {
        SCOPED_TRACE(::testing::Message()
                     << api::name(policy) << ", " << reason << (trains ? "" : ", own command"));
        const api::TrainingJob job = with_policy(make_job(1, 2), policy);
        Observed world = trains ? make_running_world(job) : make_commands_world(job);
        finish(world, pod_of(world, Role::kWorker, 1), 0);
        expect_untouched(world, "it has ended");
        disrupt(world, pod_of(world, Role::kWorker, 1), 0, reason);
        expect_untouched(world, "its pod has failed");
        expect_untouched_for_good(world);
      }
    }
  }
}

TEST(FinishedTest, AProgramThatEndsWellBecauseItIsEvictedHasNotFinished) {
  for (const Role role : {Role::kChief, Role::kWorker}) {
    Observed world = make_commands_world(with_policy(make_job(1, 2), api::RestartPolicy::kOnFailure));
    disrupt(world, pod_of(world, role, 0), 0);
    const Plan made = plan(world);
    EXPECT_EQ(made.status.phase, Phase::kRestarting) << explain(made);
    EXPECT_EQ(made.status.reason, "Evicted");
  }
}

// Its process is still about to end, and nobody needs to see how.
TEST(FinishedTest, WhoseWorkIsDoneIsNotLostToADisruption) {
  for (const api::RestartPolicy policy : kPolicies) {
    for (const auto how :
         {std::optional<int>(), std::optional(0), std::optional(3), std::optional(-SIGKILL)}) {
      for (const bool by_status : {false, true}) {
        SCOPED_TRACE(::testing::Message() << api::name(policy) << ", " << how.value_or(99) << by_status);
        Observed world = make_running_world(with_policy(make_job(1, 2), policy));
        say_finished(world, Role::kWorker, 1);
        if (by_status) apply(plan(world), world);
        if (by_status) new_coordinator(world);
        disrupt(world, pod_of(world, Role::kWorker, 1), how, "TerminationByKubelet");
        expect_untouched(world, "its node shuts down");
        EXPECT_EQ(world.job.status.members.back().phase, kFinishedPhase);
        remove(world, "fashion-worker-1-0");
        expect_untouched(world, "it is gone");
      }
    }
  }
}

// Who failed long ago and is no loss does not cut short what a new failure waits for, nor is it its victim.
TEST(FinishedTest, AFinishedMembersDisruptionIsNoPartOfAnothersFailure) {
  Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kNever));
  say_finished(world, Role::kWorker, 1);
  disrupt(world, pod_of(world, Role::kWorker, 1), std::nullopt);
  kill(world, pod_of(world, Role::kWorker, 0), SIGKILL);
  const Plan waits = plan(world);
  EXPECT_EQ(waits.status.phase, Phase::kRunning) << explain(waits);
  world.now += world.limits.verdict_grace;
  const Plan made = plan(world);
  EXPECT_EQ(made.status.reason, "MemberKilled");
  EXPECT_EQ(made.status.message.find("worker-1"), std::string::npos) << made.status.message;
}

// A view that another controller gathers again: who has finished does not come to it, though its pod runs.
TEST(FinishedTest, NobodyWaitsForAFinishedMemberToJoin) {
  for (const bool finished : {true, false}) {
    Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kNever));
    if (finished) say_finished(world, Role::kWorker, 1);
    apply(plan(world), world);
    JobReport forming;
    forming.members = {world.report->members[0], world.report->members[1]};
    forming.in_phase = world.limits.attach_timeout;
    world.report = forming;
    note_pod_observations(world);
    world.now += world.limits.attach_timeout;
    const Plan made = plan(world);
    EXPECT_EQ(made.status.reason, finished ? "MembersTrain" : "MemberMissing") << explain(made);
  }
}

// The others wait for another view, to which it does not come: that its process ended well is no permanent
// failure of it.
TEST(FinishedTest, AFinishedMemberThatIsMissedAfterAllIsARestart) {
  Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kExitCode));
  finish(world, pod_of(world, Role::kWorker, 1), 0);
  pod_of(world, Role::kWorker, 1).exit_code = 0;
  apply(plan(world), world);
  world.report->phase = ReportPhase::kFailed;
  world.report->fault =
      api::Fault{.kind = api::FaultKind::kUnreachable, .role = Role::kWorker, .index = 1, .exit_code = 0};
  const Plan made = plan(world);
  EXPECT_EQ(made.status.phase, Phase::kRestarting) << explain(made);
  EXPECT_EQ(made.status.reason, "Silent");
  EXPECT_EQ(made.status.message.find("permanent"), std::string::npos) << made.status.message;
}

TEST(FinishedTest, TheLastAttemptsFinishedWorkerIsOfThatAttemptOnly) {
  Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kOnFailure));
  finish(world, pod_of(world, Role::kWorker, 1), 0);
  apply(plan(world), world);
  finish(world, pod_of(world, Role::kWorker, 0), 137, world.limits.verdict_grace);
  apply(plan(world), world);
  EXPECT_EQ(world.job.status.phase, Phase::kRestarting);
  advance(world);
  EXPECT_THAT(actions_of<CreatePod>(plan(world)), SizeIs(3));
}

// ---- the leader

// Others may be about to end, for Limits::finish_grace at most.
TEST(FinishedTest, ALeaderThatHasFinishedMayBeDeletedWhileOthersLeave) {
  for (const bool trains : {true, false}) {
    const api::TrainingJob job = with_policy(make_job(1, 2), api::RestartPolicy::kOnFailure);
    Observed world = trains ? make_running_world(job) : make_commands_world(job);
    new_coordinator(world);
    finish(world, pod_of(world, Role::kChief, 0), 0);
    apply(plan(world), world);
    remove(world, "fashion-chief-0-0");
    EXPECT_EQ(plan(world).leader_finished, trains) << "its coordinator does not know";
    EXPECT_EQ(actions_of<DeletePod>(plan(world)).size(), trains ? 0u : 2u)
        << "without one nobody knows any more since when it waits";
    if (trains) world.report->in_phase = world.limits.finish_grace;
    const Plan made = plan(world);
    EXPECT_EQ(made.status.phase, Phase::kRunning) << explain(made);
    EXPECT_THAT(actions_of<DeletePod>(made), SizeIs(2));
    EXPECT_THAT(actions_of<CreatePod>(made), IsEmpty());
    apply(made, world);
    advance(world);
    EXPECT_EQ(plan(world).status.phase, Phase::kSucceeded);
  }
}

// The coordinator lets the others leave before it calls the job finished.
TEST(FinishedTest, ALeaderThatSaysSoHasFinishedTheJob) {
  Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kOnFailure));
  say_finished(world, Role::kChief, 0);
  pod_of(world, Role::kWorker, 0).deleting = true;
  kill(world, pod_of(world, Role::kWorker, 1), SIGKILL, world.limits.verdict_grace);
  const Plan now = plan(world);
  EXPECT_EQ(now.status.phase, Phase::kRunning) << explain(now);
  EXPECT_THAT(now.actions, IsEmpty());
  apply(now, world);
  advance(world);
  finish(world, pod_of(world, Role::kChief, 0), 0);
  const Plan end = plan(world);
  EXPECT_EQ(end.status.phase, Phase::kSucceeded);
  EXPECT_EQ(end.status.message,
            "training finished after 120 steps; afterwards worker-1 was killed by signal 9 (SIGKILL)");
}

// An attempt that went back to a checkpoint may reach its target before it comes as far as the one before.
TEST(FinishedTest, TheStepsAreThoseOfTheAttemptThatFinished) {
  for (const Step told : {90, 0}) {
    Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kOnFailure));
    world.job.status.progress.test_accuracy = 0.5;  // of step 120
    world.report->progress = {.step = told};
    world.report->phase = ReportPhase::kFinished;
    for (cluster::Pod& pod : world.pods) finish(world, pod, 0);
    const Plan end = plan(world);
    EXPECT_EQ(end.status.phase, Phase::kSucceeded) << explain(end);
    const bool seen = told > 0;  // else it began when training was over
    EXPECT_EQ(end.status.message, seen ? "training finished after 90 steps"
                                       : "training finished after 120 steps, test accuracy 0.5");
    EXPECT_EQ(end.status.progress.step, seen ? 90 : 120);
  }
}

// The coordinator still counts down: what has become of the leader's pod does not shorten that.
TEST(FinishedTest, TheOthersHaveTheirTimeThoughTheLeadersPodIsGone) {
  Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kOnFailure));
  say_finished(world, Role::kChief, 0);
  apply(plan(world), world);
  remove(world, "fashion-chief-0-0");
  const Plan waits = plan(world);
  EXPECT_THAT(waits.actions, IsEmpty()) << explain(waits);
  ASSERT_TRUE(waits.requeue_after);
  apply(waits, world);
  world.report->phase = ReportPhase::kFinished;
  world.report->in_phase = world.limits.finish_grace;
  EXPECT_THAT(actions_of<DeletePod>(plan(world)), SizeIs(2));
}

TEST(FinishedTest, ProgramsThatEndWellWithoutTrainingFailTheJobThoughPodsAreGone) {
  for (const Role gone : {Role::kChief, Role::kWorker}) {
    Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kNever), 0);
    for (cluster::Pod& pod : world.pods) finish(world, pod, 0);
    apply(plan(world), world);
    remove(world, pod_of(world, gone, 0).spec.name);
    apply(plan(world), world);
    EXPECT_EQ(world.job.status.phase, Phase::kRunning) << "the last report may be under way";
    world.now += world.limits.report_grace;
    EXPECT_EQ(plan(world).status.reason, "NotFinished");
  }
}

TEST(FinishedTest, ADisruptedMemberThatHadFinishedDoesNotKeepSuchAJobAlive) {
  Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kNever), 0);
  for (cluster::Pod& pod : world.pods) finish(world, pod, 0);
  apply(plan(world), world);
  disrupt(world, pod_of(world, Role::kWorker, 1), 0);
  world.now += world.limits.report_grace;
  EXPECT_EQ(plan(world).status.reason, "NotFinished");
}

// ---- servers, spare workers, and who stands beside

// They hold what the chief writes.
TEST(FinishedTest, AServerIsMissedUntilTheChiefHasFinished) {
  Observed world =
      make_running_world(with_policy(make_job_with_servers(2, 1), api::RestartPolicy::kOnFailure));
  for (const int index : {0, 1}) {
    say_finished(world, Role::kWorker, index);
    finish(world, pod_of(world, Role::kWorker, index), 0);
  }
  expect_untouched(world, "the chief writes its model");
  Observed deleted = world;
  pod_of(deleted, Role::kServer, 0).deleting = true;
  EXPECT_EQ(plan(deleted).status.phase, Phase::kRestarting);
  Observed gone = world;
  remove(gone, "fashion-ps-0-0");
  EXPECT_EQ(plan(gone).status.phase, Phase::kRestarting);
  Observed evicted = world;
  say_finished(evicted, Role::kServer, 0);
  disrupt(evicted, pod_of(evicted, Role::kServer, 0), 0);
  EXPECT_EQ(plan(evicted).status.phase, Phase::kRestarting);
  say_finished(world, Role::kChief, 0);
  pod_of(world, Role::kServer, 0).deleting = true;
  EXPECT_EQ(plan(world).status.phase, Phase::kRunning);
}

TEST(FinishedTest, AFinishedSpareWorkerIsNotMissedByAnotherCoordinatorEither) {
  for (const api::RestartPolicy policy : kPolicies) {
    SCOPED_TRACE(api::name(policy));
    api::TrainingJob job = with_policy(make_job_with_servers(2, 1), policy);
    job.spec.strategy.backup_workers = 1;
    Observed world = make_running_world(job);
    say_finished(world, Role::kWorker, 1);
    finish(world, pod_of(world, Role::kWorker, 1), 0);
    expect_untouched(world, "it has ended");
    remove(world, "fashion-worker-1-0");
    expect_untouched(world, "it is gone");
    new_coordinator(world);
    expect_untouched(world, "another controller took over");
  }
}

// What its policy does not replace, a deletion doesn't bring back; one that runs comes back.
TEST(FinishedTest, AnEvaluatorThatHasEndedComesBackByItsPolicyAlone) {
  for (const api::RestartPolicy policy : kPolicies) {
    for (const int code : {0, 1}) {
      SCOPED_TRACE(::testing::Message() << api::name(policy) << ", code " << code);
      const bool replaced =
          code == 0 ? policy == api::RestartPolicy::kAlways
                    : policy == api::RestartPolicy::kAlways || policy == api::RestartPolicy::kOnFailure;
      Observed world = make_running_world(with_policy(make_job_with_servers(1, 1, 1), policy));
      finish(world, pod_of(world, Role::kEvaluator, 0), code);
      apply(plan(world), world);
      remove(world, "fashion-evaluator-0-0");
      const std::vector<CreatePod> made = actions_of<CreatePod>(plan(world));
      ASSERT_THAT(made, SizeIs(replaced ? 1 : 0));
      if (replaced) {
        EXPECT_EQ(made[0].spec.name, "fashion-evaluator-0-1");
      }
    }
    Observed world = make_running_world(with_policy(make_job_with_servers(1, 1, 1), policy));
    remove(world, "fashion-evaluator-0-0");
    EXPECT_THAT(actions_of<CreatePod>(plan(world)), SizeIs(1)) << "it ran";
    EXPECT_EQ(plan(world).status.phase, Phase::kRunning);
  }
}

TEST(FinishedTest, AServerBesideComesBackUnlessItHasEnded) {
  api::TrainingJob job = with_policy(make_job(1, 1), api::RestartPolicy::kNever);
  job.spec.replica_specs.ps = api::ReplicaSpec{1, api::RestartPolicy::kNever, {}};
  const Observed runs = make_commands_world(job);
  Observed deleted = runs;
  remove(deleted, "fashion-ps-0-0");
  EXPECT_THAT(actions_of<CreatePod>(plan(deleted)), SizeIs(1));
  Observed ended = runs;
  finish(ended, pod_of(ended, Role::kServer, 0), 1);
  apply(plan(ended), ended);
  remove(ended, "fashion-ps-0-0");
  EXPECT_THAT(plan(ended).actions, IsEmpty());
}

const api::ReplicaStatus& counts_of(const api::Status& status, Role role) {
  return *std::ranges::find(status.replica_statuses, role, &api::ReplicaStatus::role);
}

TEST(FinishedTest, WhoHasSucceededCountsWhenItsPodIsGone) {
  for (const bool trains : {true, false}) {
    SCOPED_TRACE(trains ? "" : "own command");
    Observed world = trains ? make_running_world(make_job(1, 2)) : make_commands_world(make_job(1, 2));
    finish(world, pod_of(world, Role::kWorker, 1), 0);
    apply(plan(world), world);
    EXPECT_EQ(counts_of(world.job.status, Role::kWorker),
              (api::ReplicaStatus{.role = Role::kWorker, .active = 1, .ready = 1, .succeeded = 1}));
    remove(world, "fashion-worker-1-0");
    for (int i = 0; i < 2; ++i) {
      new_coordinator(world);
      apply(plan(world), world);
      EXPECT_EQ(counts_of(world.job.status, Role::kWorker).succeeded, 1);
    }
    finish(world, pod_of(world, Role::kChief, 0), 0);
    finish(world, pod_of(world, Role::kWorker, 0), 0);
    apply(plan(world), world);
    ASSERT_EQ(world.job.status.phase, Phase::kSucceeded);
    world.pods.clear();
    apply(plan(world), world);
    EXPECT_EQ(counts_of(world.job.status, Role::kChief).succeeded, 1) << "cleanPodPolicy: All";
    EXPECT_EQ(counts_of(world.job.status, Role::kWorker).succeeded, 2);
  }
}

TEST(FinishedTest, WhoseWorkIsDoneHasSucceededHoweverItsPodEnds) {
  Observed world = make_running_world(make_job(1, 2));
  say_finished(world, Role::kWorker, 1);
  apply(plan(world), world);
  EXPECT_EQ(counts_of(world.job.status, Role::kWorker),
            (api::ReplicaStatus{.role = Role::kWorker, .active = 2, .ready = 2}))
      << "its pod has not ended yet";
  disrupt(world, pod_of(world, Role::kWorker, 1), std::nullopt);
  apply(plan(world), world);
  EXPECT_EQ(counts_of(world.job.status, Role::kWorker).succeeded, 1);
  EXPECT_EQ(counts_of(world.job.status, Role::kWorker).failed, 0);
  remove(world, "fashion-worker-1-0");
  EXPECT_EQ(counts_of(plan(world).status, Role::kWorker).succeeded, 1);
}

TEST(FinishedTest, WhoHasFailedCountsWhenItsPodIsGone) {
  Observed world = make_running_world(make_job(1, 2));
  finish(world, pod_of(world, Role::kWorker, 0), 1, world.limits.verdict_grace);
  apply(plan(world), world);
  ASSERT_EQ(world.job.status.phase, Phase::kFailed);
  world.pods.clear();
  apply(plan(world), world);
  EXPECT_EQ(counts_of(world.job.status, Role::kWorker).failed, 1);
  EXPECT_EQ(counts_of(world.job.status, Role::kChief).failed, 0) << "it was deleted";
}

TEST(FinishedTest, TheLastAttemptsEndsCountNoMore) {
  Observed world = make_running_world(with_policy(make_job(1, 2), api::RestartPolicy::kOnFailure));
  finish(world, pod_of(world, Role::kWorker, 1), 0);
  apply(plan(world), world);
  finish(world, pod_of(world, Role::kWorker, 0), 137, world.limits.verdict_grace);
  apply(plan(world), world);
  ASSERT_EQ(world.job.status.restarts.attempt, 1);
  world.pods.clear();
  apply(plan(world), world);
  EXPECT_EQ(counts_of(world.job.status, Role::kWorker).succeeded, 0);
  EXPECT_EQ(counts_of(world.job.status, Role::kWorker).failed, 0);
}

}  // namespace
}  // namespace paceline::plan
