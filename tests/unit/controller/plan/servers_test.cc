// Jobs with spec.training, servers and an evaluator: servers are members, the evaluator stands beside.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process_end.h"
#include "controller/plan/attempts.h"
#include "controller/plan/explain.h"
#include "controller/plan/plan.h"
#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> created(const Plan& plan) {
  std::vector<std::string> names;
  for (const CreatePod& action : actions_of<CreatePod>(plan)) names.push_back(action.spec.name);
  return names;
}

std::vector<std::string> deleted(const Plan& plan) {
  std::vector<std::string> names;
  for (const DeletePod& action : actions_of<DeletePod>(plan)) names.push_back(action.name);
  return names;
}

void fail_by_verdict(Observed& world, Role role, int index) {
  world.report->fault = api::Fault{
      .role = role, .index = index, .pod = pod_of(world, role, index).spec.name, .signal = SIGKILL};
}

void lose(Observed& world, Role role, int index) {
  world.report->lost.push_back({role, index, pod_of(world, role, index).spec.name, "worker-1 died"});
}

const api::MemberStatus& member(const Plan& plan, Role role, int index) {
  for (const api::MemberStatus& each : plan.status.members) {
    if (each.role == role && each.index == index) return each;
  }
  ADD_FAILURE() << "no member " << slot_name(role, index);
  return plan.status.members.at(0);
}

TEST(ServersTest, PodsAreMadeForAllRolesAndTheThreadsSharedOut) {
  Observed world = make_world(make_job_with_servers(1, 2, 1));
  world.limits.first_batch = 8;
  const Plan first = plan(world);
  EXPECT_EQ(created(first),
            (std::vector<std::string>{"fashion-chief-0-0", "fashion-worker-0-0", "fashion-ps-0-0",
                                      "fashion-ps-1-0", "fashion-evaluator-0-0"}));
  for (const CreatePod& action : actions_of<CreatePod>(first)) {
    EXPECT_EQ(action.spec.threads, 2) << "8 cores for chief, worker and two servers";
    EXPECT_EQ(action.spec.command, world.limits.worker_program);
    EXPECT_EQ(action.spec.env.at("PACELINE_ROLE"), role_name(action.spec.role));
    EXPECT_FALSE(action.spec.env.contains("TF_CONFIG"));
  }
}

TEST(ServersTest, TheJobRunsWhenAllMembersAreThereWithoutAWordFromTheEvaluator) {
  Observed world = make_running_world(make_job_with_servers(1, 2, 1));
  const Plan now = plan(world);
  EXPECT_EQ(now.status.phase, api::Phase::kRunning);
  EXPECT_EQ(now.status.view.size, 4);
  EXPECT_EQ(now.status.restarts.size, 4);
  ASSERT_EQ(now.status.replica_statuses.size(), 4u);
  EXPECT_EQ(now.status.replica_statuses[2], (api::ReplicaStatus{Role::kServer, 2, 2, 0, 0}));
  EXPECT_EQ(now.status.replica_statuses[3], (api::ReplicaStatus{Role::kEvaluator, 1, 1, 0, 0}));
  EXPECT_EQ(member(now, Role::kServer, 1).rank, 3);
  EXPECT_EQ(member(now, Role::kEvaluator, 0).rank, -1);
}

// What they hold, the leader saves.
TEST(ServersTest, ServersHaveAsLongAsTheLeaderUnlessTheyAreToBlame) {
  const auto graces = [](const std::function<void(Observed&)>& change) {
    Observed world = make_running_world(make_job_with_servers(1, 2, 1));
    world.job.spec.run_policy.suspend = true;
    change(world);
    std::map<std::string, Duration> by_pod;
    for (const DeletePod& deleted : actions_of<DeletePod>(plan(world))) by_pod[deleted.name] = deleted.grace;
    return by_pod;
  };
  const Limits limits;
  auto suspended = graces([](Observed&) {});
  EXPECT_EQ(suspended["fashion-chief-0-0"], limits.save_grace);
  EXPECT_EQ(suspended["fashion-worker-0-0"], limits.stop_grace);
  EXPECT_EQ(suspended["fashion-ps-0-0"], limits.save_grace);
  EXPECT_EQ(suspended["fashion-ps-1-0"], limits.save_grace);
  EXPECT_EQ(suspended["fashion-evaluator-0-0"], limits.stop_grace);
  auto frozen = graces([](Observed& world) {
    world.job.spec.run_policy.suspend = false;
    fail_by_verdict(world, Role::kServer, 1);
    world.report->fault->kind = api::FaultKind::kFrozen;
  });
  EXPECT_EQ(frozen["fashion-ps-0-0"], limits.save_grace);
  EXPECT_EQ(frozen["fashion-ps-1-0"], limits.failure_grace);
  auto chief = graces([](Observed& world) {
    world.job.spec.run_policy.suspend = false;
    fail_by_verdict(world, Role::kChief, 0);
    world.report->fault->kind = api::FaultKind::kFrozen;
  });
  EXPECT_EQ(chief["fashion-ps-0-0"], limits.failure_grace) << "nobody saves";
}

TEST(ServersTest, ALostServerFailsTheJobAndIsNamed) {
  Observed world = make_running_world(make_job_with_servers(1, 2, 1));
  kill(world, pod_of(world, Role::kServer, 1), SIGKILL);
  fail_by_verdict(world, Role::kServer, 1);
  const Plan end = plan(world);
  EXPECT_EQ(end.status.phase, api::Phase::kFailed);
  EXPECT_THAT(end.status.message, HasSubstr("ps-1 (pod fashion-ps-1-0"));
  EXPECT_THAT(end.status.message, HasSubstr("SIGKILL"));
}

TEST(ServersTest, ALostServerRestartsAllMembersByItsPolicyAndLeavesTheEvaluator) {
  api::TrainingJob job = make_job_with_servers(1, 2, 1);
  job.spec.replica_specs.ps->restart_policy = api::RestartPolicy::kOnFailure;
  Observed world = make_running_world(job);
  kill(world, pod_of(world, Role::kServer, 1), SIGKILL);
  fail_by_verdict(world, Role::kServer, 1);
  const Plan next = plan(world);
  EXPECT_EQ(next.status.phase, api::Phase::kRestarting);
  EXPECT_EQ(next.status.restarts.attempt, 1);
  EXPECT_EQ(deleted(next),
            (std::vector<std::string>{"fashion-chief-0-0", "fashion-worker-0-0", "fashion-ps-0-0"}));
  apply(next, world);
  for (int i = 0; i < 8; ++i) {
    apply(plan(world), world);
    advance(world);
  }
  EXPECT_EQ(plan(world).status.phase, api::Phase::kRunning);
  EXPECT_EQ(find_pod(*present(world), Role::kServer, 1)->spec.name, "fashion-ps-1-1");
  EXPECT_EQ(find_pod(*present(world), Role::kEvaluator, 0)->spec.name, "fashion-evaluator-0-0");
}

TEST(ServersTest, AnEvaluatorThatDiesTouchesNothingAndIsReplacedByItsPolicy) {
  for (const bool replaced : {false, true}) {
    api::TrainingJob job = make_job_with_servers(1, 1, 1);
    if (replaced) job.spec.replica_specs.evaluator->restart_policy = api::RestartPolicy::kOnFailure;
    Observed world = make_running_world(job);
    kill(world, pod_of(world, Role::kEvaluator, 0), SIGKILL);
    for (int i = 0; i < 4; ++i) apply(plan(world), world);
    EXPECT_EQ(world.job.status.phase, api::Phase::kRunning);
    EXPECT_EQ(world.job.status.restarts.attempt, 0);
    const bool there = std::ranges::any_of(
        world.pods, [](const cluster::Pod& pod) { return pod.spec.name == "fashion-evaluator-0-1"; });
    EXPECT_EQ(there, replaced);
  }
}

TEST(ServersTest, SuccessIsTheChiefsAndServersHaveAGraceToLeave) {
  Observed world = make_running_world(make_job_with_servers(1, 1, 1));
  world.report->phase = ReportPhase::kFinished;
  finish(world, pod_of(world, Role::kChief, 0), 0);
  finish(world, pod_of(world, Role::kWorker, 0), 0);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kRunning) << "the server is about to leave";
  finish(world, pod_of(world, Role::kServer, 0), 0);
  const Plan end = plan(world);
  EXPECT_EQ(end.status.phase, api::Phase::kSucceeded);
  EXPECT_EQ(deleted(end), (std::vector<std::string>{"fashion-evaluator-0-0"}));
}

TEST(ServersTest, AServerThatStaysKeepsNoJobFromSucceeding) {
  using enum api::CleanPodPolicy;
  for (const api::CleanPodPolicy policy : {kRunning, kAll, kNone}) {
    SCOPED_TRACE(api::name(policy));
    Observed world = make_running_world(make_job_with_servers(1, 1));
    world.job.spec.run_policy.clean_pod_policy = policy;
    world.report->phase = ReportPhase::kFinished;
    finish(world, pod_of(world, Role::kChief, 0), 0);
    finish(world, pod_of(world, Role::kWorker, 0), 0);
    world.report->in_phase = world.limits.finish_grace;
    const Plan late = plan(world);
    apply(late, world);
    if (policy == kNone) {
      EXPECT_THAT(late.actions, ::testing::Each(::testing::VariantWith<RecordEvent>(::testing::_)));
    } else {
      EXPECT_EQ(deleted(late), (std::vector<std::string>{"fashion-ps-0-0"}));
      advance(world);
      apply(plan(world), world);
    }
    EXPECT_EQ(world.job.status.phase, api::Phase::kSucceeded);
  }
}

TEST(ServersTest, AMemberThatTheOthersGoOnWithoutEndsNothing) {
  Observed world = make_running_world(make_job_with_servers(2, 1));
  kill(world, pod_of(world, Role::kWorker, 1), SIGKILL, std::chrono::seconds(5));
  lose(world, Role::kWorker, 1);
  const Plan now = plan(world);
  EXPECT_EQ(now.status.phase, api::Phase::kRunning);
  EXPECT_EQ(now.status.reason, "MemberLost");
  EXPECT_EQ(now.status.message, "worker-1 died; the others go on without it");
  EXPECT_EQ(member(now, Role::kWorker, 1).phase, kLostPhase);
  ASSERT_EQ(actions_of<RecordEvent>(now).size(), 1u);
  EXPECT_TRUE(actions_of<RecordEvent>(now)[0].event.warning);
  apply(now, world);
  const Plan later = plan(world);
  EXPECT_TRUE(later.actions.empty()) << explain(later);

  world.report->phase = ReportPhase::kFinished;
  finish(world, pod_of(world, Role::kChief, 0), 0);
  finish(world, pod_of(world, Role::kWorker, 0), 0);
  finish(world, pod_of(world, Role::kServer, 0), 0);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kSucceeded);
}

TEST(ServersTest, WhatIsLeftOfALostMemberGoesAndNoOtherIsMade) {
  Observed world = make_running_world(make_job_with_servers(2, 1));
  lose(world, Role::kWorker, 1);  // frozen: its pod still runs
  const Plan now = plan(world);
  EXPECT_EQ(deleted(now), (std::vector<std::string>{"fashion-worker-1-0"}));
  apply(now, world);
  advance(world);
  EXPECT_EQ(find_pod(world, Role::kWorker, 1), nullptr);
  const Plan later = plan(world);
  EXPECT_TRUE(created(later).empty());
  EXPECT_EQ(later.status.phase, api::Phase::kRunning);
}

TEST(ServersTest, WhetherADeletedWorkerIsMissedIsForTheCoordinatorToSay) {
  api::TrainingJob job = make_job_with_servers(2, 1);
  for (auto* replica : {&job.spec.replica_specs.worker, &job.spec.replica_specs.ps})
    (*replica)->restart_policy = api::RestartPolicy::kOnFailure;
  Observed synchronous = make_running_world(job);
  pod_of(synchronous, Role::kWorker, 1).deleting = true;
  EXPECT_EQ(plan(synchronous).status.phase, api::Phase::kRestarting) << "every update needs everybody";
  job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
  Observed world = make_running_world(job);
  pod_of(world, Role::kWorker, 1).deleting = true;
  EXPECT_EQ(plan(world).status.phase, api::Phase::kRunning);
  Observed lost = world;
  lose(lost, Role::kWorker, 1);
  EXPECT_EQ(plan(lost).status.phase, api::Phase::kRunning);
  fail_by_verdict(world, Role::kWorker, 1);
  EXPECT_EQ(plan(world).status.phase, api::Phase::kRestarting);
  Observed server = make_running_world(job);
  pod_of(server, Role::kServer, 0).deleting = true;
  EXPECT_EQ(plan(server).status.phase, api::Phase::kRestarting);
}

// A forced deletion leaves no pod: a new one in its place would be refused by the coordinator.
TEST(ServersTest, AWorkerWhosePodIsGoneGetsNoOtherWhileTheOthersMayGoOn) {
  for (const api::RestartPolicy policy : {api::RestartPolicy::kNever, api::RestartPolicy::kOnFailure}) {
    api::TrainingJob job = make_job_with_servers(2, 1);
    job.spec.replica_specs.worker->restart_policy = policy;
    job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
    Observed world = make_running_world(job);
    std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.spec.name == "fashion-worker-1-0"; });
    const Plan before = plan(world);
    EXPECT_THAT(created(before), IsEmpty()) << explain(before);
    EXPECT_EQ(before.status.phase, api::Phase::kRunning);
    world.report->lost.push_back({Role::kWorker, 1, "fashion-worker-1-0", "worker-1 died"});
    const Plan after = plan(world);
    EXPECT_THAT(created(after), IsEmpty());
    EXPECT_EQ(after.status.reason, "MemberLost");
    EXPECT_EQ(member(after, Role::kWorker, 1).phase, kLostPhase) << "another coordinator shall know it";
    apply(after, world);
    const Plan later = plan(world);
    EXPECT_THAT(later.actions, IsEmpty()) << "it is said once\n" << explain(later);
  }
}

// Their view has ended without a coordinator, and another one needs it.
TEST(ServersTest, AMemberThatIsMissedAfterAllIsARestart) {
  api::TrainingJob job = make_job_with_servers(2, 1);
  job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
  Observed world = make_running_world(job);
  kill(world, pod_of(world, Role::kWorker, 1), SIGKILL, std::chrono::seconds(5));
  lose(world, Role::kWorker, 1);
  apply(plan(world), world);
  fail_by_verdict(world, Role::kWorker, 1);
  world.report->fault->kind = api::FaultKind::kUnreachable;
  world.report->phase = ReportPhase::kFailed;
  EXPECT_EQ(plan(world).status.phase, api::Phase::kRestarting);
}

// Its coordinator gathers the others, and is told that the pod is gone (ReportSource::pods_gone).
TEST(ServersTest, AWorkerWhosePodWentWithoutACoordinatorIsForTheNextOneToJudge) {
  for (const bool spare : {true, false}) {
    api::TrainingJob job = make_job_with_servers(2, 1);
    job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
    job.spec.replica_specs.ps->restart_policy = api::RestartPolicy::kOnFailure;
    job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
    Observed world = make_running_world(job);
    world.report = JobReport{};
    const Role role = spare ? Role::kWorker : Role::kServer;
    const int index = spare ? 1 : 0;
    const std::string name = pod_of(world, role, index).spec.name;
    pod_of(world, role, index).deleting = true;
    EXPECT_EQ(plan(world).status.phase, spare ? api::Phase::kRunning : api::Phase::kRestarting);
    std::erase_if(world.pods, [&](const cluster::Pod& pod) { return pod.spec.name == name; });
    const Plan made = plan(world);
    EXPECT_THAT(made.gone, ElementsAre(name));
    EXPECT_EQ(made.status.phase, spare ? api::Phase::kRunning : api::Phase::kRestarting) << explain(made);
    EXPECT_THAT(created(made), IsEmpty());
    if (!spare) continue;
    world.report->lost.push_back({role, index, name, "its pod was deleted"});
    EXPECT_EQ(plan(world).status.reason, "MemberLost");
  }
}

// They lost a server while nobody led, told nobody, and had ended when another controller took over.
TEST(ServersTest, AServerWhosePodWentWithoutACoordinatorIsTheReasonWhyTheOthersEnded) {
  api::TrainingJob job = make_job_with_servers(1, 1);
  for (auto* replica :
       {&job.spec.replica_specs.chief, &job.spec.replica_specs.worker, &job.spec.replica_specs.ps})
    (*replica)->restart_policy = api::RestartPolicy::kOnFailure;
  Observed world = make_running_world(job);
  world.report = JobReport{};
  finish(world, pod_of(world, Role::kChief, 0), kExitFailed, 2 * world.limits.verdict_grace);
  finish(world, pod_of(world, Role::kWorker, 0), kExitEnded, 2 * world.limits.verdict_grace);
  Observed there = world;
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.spec.role == Role::kServer; });
  const auto judge = [](Observed& seen) {
    seen.report->fault = api::Fault{.kind = api::FaultKind::kExited,
                                    .role = Role::kChief,
                                    .exit_code = kExitFailed,
                                    .evidence = {{api::ObservationKind::kPodEndedEarly, ""}}};
    seen.report->phase = ReportPhase::kFailed;
  };
  const auto restarted_by = [](const Observed& seen) { return plan(seen).status.restarts.by_cause; };
  const std::vector<api::RestartCount> exited{{Role::kChief, api::RestartCause::kExited, 1}};
  for (const bool judged : {false, true}) {
    SCOPED_TRACE(judged ? "after the verdict" : "before the verdict");
    if (judged) judge(world);
    EXPECT_THAT(plan(world).gone, ElementsAre("fashion-ps-0-0"));
    EXPECT_EQ(restarted_by(world),
              (std::vector<api::RestartCount>{{Role::kServer, api::RestartCause::kDeleted, 1}}));
    EXPECT_THAT(plan(world).status.message, HasSubstr("ps-0 (pod fashion-ps-0-0) was deleted at"));

    Observed killed = world;
    kill(killed, pod_of(killed, Role::kChief, 0), SIGSEGV, 2 * world.limits.verdict_grace);
    if (judged) killed.report->fault->signal = SIGSEGV;
    EXPECT_EQ(restarted_by(killed),
              (std::vector<api::RestartCount>{{Role::kChief, api::RestartCause::kKilled, 1}}));
    Observed heard = world;
    heard.report->generation.value = 1;
    EXPECT_EQ(restarted_by(heard), exited) << "this coordinator had a view, and would have been told";
  }
  judge(there);
  EXPECT_EQ(restarted_by(there), exited) << "nothing else is known";
  EXPECT_THAT(
      plan(there).status.message,
      HasSubstr("chief-0 (pod fashion-chief-0-0, pid 4000) exited with code 1 at step 120: its process"));
}

// A controller that takes over finds its pod running, or asked to end, on a node that is dead.
TEST(ServersTest, AWorkerThatDoesNotComeBackToANewCoordinatorIsForItToJudge) {
  const auto joins = [](Observed& world, Role role, int index) {
    world.report->members.push_back({MemberId{"m"}, role, index});
  };
  for (const bool deleting : {false, true}) {
    api::TrainingJob job = make_job_with_servers(2, 1);
    for (auto* replica : {&job.spec.replica_specs.worker, &job.spec.replica_specs.ps})
      (*replica)->restart_policy = api::RestartPolicy::kOnFailure;
    job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
    Observed world = make_running_world(job);
    pod_of(world, Role::kWorker, 1).deleting = deleting;
    world.report = JobReport{};
    joins(world, Role::kChief, 0);
    joins(world, Role::kWorker, 0);
    note_pod_observations(world);
    Observed server = world;
    joins(server, Role::kWorker, 1);
    joins(world, Role::kServer, 0);
    const auto wait = [](Observed& seen, Duration time) {
      seen.now += time;
      seen.report->in_phase += time;
    };
    wait(world, world.limits.attach_timeout - 1s);
    EXPECT_THAT(plan(world).absent, IsEmpty());
    EXPECT_EQ(plan(world).requeue_after, 1s);
    wait(world, 1s);
    const Plan made = plan(world);
    const api::Observation seen{api::ObservationKind::kNotJoined,
                                format_duration(world.limits.attach_timeout)};
    EXPECT_TRUE(made.absent == std::vector({AbsentMember{Role::kWorker, 1, "fashion-worker-1-0", seen}}));
    EXPECT_THAT(made.actions, IsEmpty()) << explain(made);
    EXPECT_EQ(made.status.phase, api::Phase::kRunning);
    Observed starting = world;
    starting.job.status.phase = api::Phase::kStarting;
    EXPECT_THAT(plan(starting).absent, IsEmpty()) << "no view of theirs can go on";
    EXPECT_EQ(plan(starting).status.phase, deleting ? api::Phase::kStarting : api::Phase::kRestarting);
    lose(world, Role::kWorker, 1);
    const Plan lost = plan(world);
    EXPECT_THAT(lost.absent, IsEmpty());
    EXPECT_EQ(lost.status.reason, "MemberLost");
    EXPECT_EQ(deleted(lost).size(), deleting ? 0u : 1u);
    wait(server, server.limits.attach_timeout);
    EXPECT_THAT(plan(server).absent, IsEmpty());
    EXPECT_EQ(plan(server).status.phase, api::Phase::kRestarting) << "nobody can do without a server";
  }
}

TEST(ServersTest, TheLossOfAnotherMemberStillFailsTheJob) {
  Observed world = make_running_world(make_job_with_servers(2, 1));
  kill(world, pod_of(world, Role::kWorker, 1), SIGKILL, 2 * world.limits.verdict_grace);
  lose(world, Role::kWorker, 1);
  kill(world, pod_of(world, Role::kServer, 0), SIGSEGV, world.limits.verdict_grace);
  const Plan end = plan(world);
  EXPECT_EQ(end.status.phase, api::Phase::kFailed);
  EXPECT_THAT(end.status.message, HasSubstr("ps-0"));
}

TEST(ServersTest, WhatServersAndWorkersSayIsInTheStatus) {
  Observed world = make_running_world(make_job_with_servers(1, 1));
  world.report->members.at(1).staleness = api::StalenessStatus{
      .applied = 7, .dropped = 1, .max = 3, .mean = 0.5, .wait_seconds = 2, .histogram = {5, 1, 0, 1}};
  world.report->members.at(2).server = api::ServerStatus{.load = 0.5,
                                                         .bytes_per_second = 1e6,
                                                         .queue = 2,
                                                         .updates = 9,
                                                         .rows = 40,
                                                         .row_bytes = 800,
                                                         .hottest = {{"deep", 5, 3}}};
  const Plan now = plan(world);
  EXPECT_EQ(member(now, Role::kWorker, 0).staleness, world.report->members.at(1).staleness);
  EXPECT_EQ(member(now, Role::kServer, 0).server, world.report->members.at(2).server);

  const auto told = member(now, Role::kWorker, 0).staleness;
  world.job.status = now.status;
  world.report.reset();  // the job's end, or another controller that nobody has talked to yet
  EXPECT_EQ(member(plan(world), Role::kWorker, 0).staleness, told) << "its last word";
  const api::ServerStatus counts{.updates = 9, .rows = 40, .row_bytes = 800, .hottest = {{"deep", 5, 3}}};
  EXPECT_EQ(member(plan(world), Role::kServer, 0).server, counts) << "its last word; rates are of now";
  EXPECT_EQ(member(plan(world), Role::kWorker, 0).step, 120) << "its last word";
  pod_of(world, Role::kWorker, 0).spec.name = "fashion-worker-0-1";
  pod_of(world, Role::kServer, 0).spec.name = "fashion-ps-0-1";
  EXPECT_FALSE(member(plan(world), Role::kServer, 0).server) << "another pod's rows are its own";
  EXPECT_FALSE(member(plan(world), Role::kWorker, 0).staleness) << "another pod's gradients are its own";
  EXPECT_EQ(member(plan(world), Role::kWorker, 0).step, 0) << "another pod's steps are its own";
}

}  // namespace
}  // namespace paceline::plan
