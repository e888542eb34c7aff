#include "controller/plan/stragglers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using api::ReplacementOutcome;
using api::StragglerAction;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kReplace = api::StragglerPolicyAction::kReplace;

// A step takes 100 ms, and worker-1 is the cause of 40 of them.
api::Straggler worker_1(const std::string& pod = "fashion-worker-1-0") {
  return {.role = Role::kWorker,
          .index = 1,
          .rank = 2,
          .pod = pod,
          .part = "compute",
          .factor = 1.67,
          .own_ms = 100,
          .typical_ms = 60,
          .lost_ms = 40,
          .cause = api::StragglerCause::kCpuQuota};
}

// A chief and three workers on two nodes, and worker-1 was found to be slow a moment ago.
class PlanStragglersTest : public ::testing::Test {
 protected:
  PlanStragglersTest() {
    api::TrainingJob job = make_job(1, 3);
    job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
    job.spec.stragglers.action = kReplace;
    begin(std::move(job));
  }
  void begin(api::TrainingJob job) {
    world = make_running_world(std::move(job));
    for (cluster::Pod& pod : world.pods) pod.host = pod.spec.index == 1 ? "node-b" : "node-a";
    world.report->progress.eta_seconds = 3600;
    world.report->stragglers = {worker_1()};
    look();
  }
  Plan look(Duration later = {}) {
    world.now += later;
    Plan made = plan(world);
    apply(made, world);
    return made;
  }
  const api::Straggler& straggler() const { return world.job.status.stragglers.front(); }
  const std::vector<api::StragglerReplacement>& told() const {
    return world.job.status.straggler_replacements;
  }
  std::vector<std::string> pods() const {
    std::vector<std::string> names;
    for (const cluster::Pod& pod : world.pods) {
      if (!pod.ended() && !pod.deleting) names.push_back(pod.spec.name);
    }
    return names;
  }
  bool runs(const std::string& name) const { return std::ranges::count(pods(), name) > 0; }
  // It has cost 30 s by then: it is decided, and its successor's pod is made.
  void decide() {
    look(seconds(76));
    look();
  }
  void lose_worker(int index) {
    cluster::Pod& pod = pod_of(world, Role::kWorker, index);
    kill(world, pod, SIGKILL);
    world.report->lost = {{.fault = {.kind = api::FaultKind::kDead,
                                     .role = Role::kWorker,
                                     .index = index,
                                     .pod = pod.spec.name,
                                     .signal = SIGKILL},
                           .age = seconds(1)}};
  }
  static std::vector<std::string> reasons(const Plan& made) {
    std::vector<std::string> all;
    for (const RecordEvent& each : actions_of<RecordEvent>(made)) all.push_back(each.event.reason);
    return all;
  }
  void hand_over() {
    world.report->handed_over = handover_of(world.job);
    world.report->stragglers.emplace();
    look();
    look();
  }

  Observed world;
};

TEST_F(PlanStragglersTest, ItIsReplacedOnceTheJobHasLostEnoughToIt) {
  EXPECT_EQ(straggler().action, StragglerAction::kWait);
  Plan made = look(seconds(74));
  EXPECT_EQ(straggler().action, StragglerAction::kWait) << "29.6 s are lost";
  ASSERT_TRUE(made.requeue_after.has_value());
  EXPECT_LE(*made.requeue_after, seconds(1));
  EXPECT_THAT(told(), IsEmpty());
  made = look(seconds(2));
  EXPECT_EQ(straggler().action, StragglerAction::kReplace);
  EXPECT_THAT(actions_of<CreatePod>(made), IsEmpty()) << "first it is written";
  ASSERT_EQ(told().size(), 1U);
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kUnderWay);
  EXPECT_EQ(told()[0].pod, "fashion-worker-1-0");
  EXPECT_EQ(told()[0].host, "node-b");
  EXPECT_EQ(told()[0].successor, "fashion-worker-1-1");
  EXPECT_EQ(handover_of(world.job), (Incarnation{Role::kWorker, 1, 1}));
}

TEST_F(PlanStragglersTest, TheSuccessorComesFirstAndElsewhere) {
  look(seconds(76));
  const Plan made = look();
  const auto created = actions_of<CreatePod>(made);
  ASSERT_EQ(created.size(), 1U);
  EXPECT_EQ(created[0].spec.name, "fashion-worker-1-1");
  EXPECT_EQ(created[0].spec.avoid_host, "node-b");
  EXPECT_EQ(created[0].spec.env.at("PACELINE_INCARNATION"), "1");
  EXPECT_THAT(actions_of<DeletePod>(made), IsEmpty());
  EXPECT_EQ(pods().size(), 5U);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(actions_of<CreatePod>(look(seconds(1))), IsEmpty()) << "once";
  EXPECT_EQ(pods().size(), 5U) << "both stay until the place is handed over";
  EXPECT_EQ(world.job.status.phase, api::Phase::kRunning);
}

TEST_F(PlanStragglersTest, ThePlaceIsTheSuccessorsOnceItIsHandedOver) {
  decide();
  hand_over();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kReplaced);
  EXPECT_FALSE(runs("fashion-worker-1-0"));
  EXPECT_TRUE(runs("fashion-worker-1-1"));
  EXPECT_EQ(handover_of(world.job), std::nullopt);
  EXPECT_THAT(actions_of<CreatePod>(look(seconds(1))), IsEmpty());
  EXPECT_THAT(slow_hosts(world.job, world.now), ElementsAre("node-b"));
  EXPECT_THAT(slow_hosts(world.job, world.now + hours(1)), IsEmpty()) << "windowSeconds";
  EXPECT_EQ(world.job.status.restarts.total, 0) << "no failure";
}

TEST_F(PlanStragglersTest, LaterPodsShunTheSlowNode) {
  decide();
  hand_over();
  lose_worker(2);
  look();
  const auto created = actions_of<CreatePod>(look());
  ASSERT_EQ(created.size(), 1U);
  EXPECT_THAT(created[0].spec.shunned_hosts, ElementsAre("node-b"));
  EXPECT_EQ(created[0].spec.avoid_host, "") << "where nothing else has room it may come there";
}

TEST_F(PlanStragglersTest, ASuccessorThatIsAsSlowClearsTheNode) {
  decide();
  hand_over();
  world.report->stragglers = {worker_1("fashion-worker-1-1")};
  look();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kAsSlow);
  EXPECT_THAT(slow_hosts(world.job, world.now), IsEmpty());
  look(minutes(10));
  EXPECT_EQ(straggler().action, StragglerAction::kReport) << "another one would be as slow";
  EXPECT_EQ(told().size(), 1U);
}

TEST_F(PlanStragglersTest, ASuccessorThatIsALittleSlowIsAnotherMatter) {
  decide();
  hand_over();
  world.report->stragglers = {worker_1("fashion-worker-1-1")};
  world.report->stragglers->front().factor = 1.2;
  look();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kReplaced);
}

TEST_F(PlanStragglersTest, AMemberThatRecoversStays) {
  decide();
  world.report->stragglers.emplace();
  look();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kUnderWay)
      << "another coordinator, which knows too little yet";
  world.report->cleared = {"fashion-worker-1-0"};
  api::Straggler all;
  all.kind = api::StragglerKind::kAllSlow;
  all.members = 2;
  world.report->stragglers = {all};
  look();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kUnderWay) << "it is one of several now";
  world.report->stragglers.emplace();
  look();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kRecovered);
  look();
  EXPECT_FALSE(runs("fashion-worker-1-1"));
  EXPECT_TRUE(runs("fashion-worker-1-0"));
  EXPECT_EQ(handover_of(world.job), std::nullopt);
}

TEST_F(PlanStragglersTest, ASuccessorThatEndsOrNeverComesIsGivenUpAndNotTriedAgain) {
  decide();
  for (cluster::Pod& each : world.pods) {
    if (each.spec.name == "fashion-worker-1-1") finish(world, each, 3);
  }
  look();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kNoSuccessor);
  look(minutes(5));
  EXPECT_EQ(straggler().action, StragglerAction::kReport);
  EXPECT_EQ(told().size(), 1U);
  look(hours(1));
  look();
  ASSERT_EQ(told().size(), 2U) << "the window has passed";
  EXPECT_EQ(told()[1].successor, "fashion-worker-1-2") << "no number is used twice";
  look();
  look(kHandoverTimeout);
  EXPECT_EQ(told()[1].outcome, ReplacementOutcome::kNoSuccessor);
}

TEST_F(PlanStragglersTest, AHandoverThatIsCarriedOutAsItIsGivenUpCounts) {
  decide();
  const std::optional<Incarnation> to = handover_of(world.job);
  look(kHandoverTimeout);
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kNoSuccessor);
  EXPECT_THAT(given_up(world.job), ElementsAre(*to));
  world.report->handed_over = to;
  EXPECT_THAT(actions_of<DeletePod>(look()), IsEmpty());
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kReplaced);
  EXPECT_THAT(given_up(world.job), IsEmpty());
  look();
  EXPECT_FALSE(runs("fashion-worker-1-0"));
  EXPECT_TRUE(runs("fashion-worker-1-1"));
}

TEST_F(PlanStragglersTest, AFailureInThePlaceTakesAFreshNumber) {
  decide();
  lose_worker(1);
  world.report->stragglers.emplace();
  world.report->state = JobState::kForming;
  EXPECT_THAT(reasons(look()), Not(Contains(kReplacementOver)));
  const std::vector<std::string> told_of = reasons(look());
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kOverBefore);
  EXPECT_THAT(told_of, Contains(kReplacementOver));
  EXPECT_THAT(told_of, Not(Contains(kStragglerKept))) << "it was lost";
  look();
  EXPECT_TRUE(runs("fashion-worker-1-2"));
  EXPECT_FALSE(runs("fashion-worker-1-1"));
}

TEST_F(PlanStragglersTest, AHandoverIsCalledOffWhereTheActionIsAnotherOneNow) {
  decide();
  world.job.spec.stragglers.action = api::StragglerPolicyAction::kReport;
  EXPECT_THAT(reasons(look()), Contains(kStragglerKept));
  look();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kOverBefore);
  EXPECT_FALSE(runs("fashion-worker-1-1"));
  EXPECT_TRUE(runs("fashion-worker-1-0"));
}

TEST_F(PlanStragglersTest, ASuccessorThatIsRefusedIsNoTroubleOfTheJobs) {
  decide();
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.spec.attempt == 1; });
  world.create_failure = CreateFailure{1, "fashion-worker-1-1", "exceeded quota"};
  look();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kNoSuccessor);
  const Plan made = look();
  EXPECT_NE(made.status.reason, "PodNotCreated");
  EXPECT_EQ(made.status.phase, api::Phase::kRunning);
}

TEST_F(PlanStragglersTest, AMissingMemberComesBeforeASuccessor) {
  look(seconds(76));
  lose_worker(2);
  look();
  const auto created = actions_of<CreatePod>(look());
  ASSERT_EQ(created.size(), 1U);
  EXPECT_EQ(created[0].spec.name, "fashion-worker-2-1");
}

TEST_F(PlanStragglersTest, ASuccessorMakesRoomForAMemberThatAllWaitFor) {
  decide();
  EXPECT_TRUE(runs("fashion-worker-1-1"));
  world.report->successor_phase = "waiting";
  world.report->state = JobState::kForming;
  lose_worker(2);
  look();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kUnderWay) << "the others may go on without it";
  world.report->shortage = {.here = 2, .missing = 1};
  look();
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kOverBefore);
  look();
  EXPECT_FALSE(runs("fashion-worker-1-1"));
  EXPECT_TRUE(runs("fashion-worker-1-0"));
}

TEST_F(PlanStragglersTest, ASuspendedJobHasNoSuccessors) {
  decide();
  world.job.spec.run_policy.suspend = true;
  for (int i = 0; i < 3; ++i) look();
  EXPECT_THAT(pods(), IsEmpty());
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kOverBefore);
}

TEST_F(PlanStragglersTest, TheBudgetHoldsForAWindow) {
  world.job.spec.stragglers.max_replacements = 1;
  decide();
  hand_over();
  api::Straggler other = worker_1("fashion-worker-2-0");
  other.index = 2;
  world.report->stragglers = {other};
  look();
  look(minutes(10));
  EXPECT_EQ(straggler().action, StragglerAction::kReport);
  look(hours(1));
  EXPECT_EQ(told().size(), 2U);
}

TEST_F(PlanStragglersTest, OneIsReplacedAtATimeTheWorstFirst) {
  api::Straggler other = worker_1("fashion-worker-2-0");
  other.index = 2;
  other.lost_ms = 45;
  world.report->stragglers = {worker_1(), other};
  look();
  look(seconds(80));
  ASSERT_EQ(told().size(), 1U);
  EXPECT_EQ(told()[0].pod, "fashion-worker-2-0");
  look(seconds(1));
  EXPECT_EQ(world.job.status.stragglers[0].action, StragglerAction::kWait);
  EXPECT_EQ(world.job.status.stragglers[1].action, StragglerAction::kReplace);
}

TEST_F(PlanStragglersTest, AMemberWhoseReplacementGainsNothingStays) {
  world.report->progress.eta_seconds = 60;
  look(minutes(2));
  EXPECT_EQ(straggler().action, StragglerAction::kWait) << "24 s would be gained";
  EXPECT_THAT(told(), IsEmpty());
}

TEST_F(PlanStragglersTest, AMemberThatAnotherPodWouldNotHelpStays) {
  const auto action_of = [&](auto&& change) {
    api::TrainingJob job = make_job(1, 3);
    job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
    job.spec.stragglers.action = kReplace;
    api::Straggler found = worker_1();
    change(job, found);
    begin(std::move(job));
    world.report->stragglers = {found};
    look();
    look(minutes(5));
    return straggler().action;
  };
  EXPECT_EQ(action_of([](auto&, auto&) {}), StragglerAction::kReplace);
  EXPECT_EQ(
      action_of([](auto& job, auto&) { job.spec.stragglers.action = api::StragglerPolicyAction::kReport; }),
      StragglerAction::kReport);
  EXPECT_EQ(action_of([](auto& job, auto&) { job.spec.stragglers.factor = 1.7; }), StragglerAction::kReport);
  EXPECT_EQ(action_of([](auto&, auto& found) { found.kind = api::StragglerKind::kMoreWork; }),
            StragglerAction::kReport);
  EXPECT_EQ(action_of([](auto&, auto& found) { found.kind = api::StragglerKind::kAllSlow; }),
            StragglerAction::kReport);
  EXPECT_EQ(action_of([](auto& job, auto&) {
              job.spec.replica_specs.worker->restart_scope = api::RestartScope::kJob;
            }),
            StragglerAction::kReport);
  const auto transfer = [&](api::StragglerCause cause) {
    return action_of([cause](auto&, auto& found) {
      found.part = "transfer";
      found.cause = cause;
    });
  };
  EXPECT_EQ(transfer(api::StragglerCause::kUnknown), StragglerAction::kReport) << "perhaps a link";
  EXPECT_EQ(transfer(api::StragglerCause::kCpuQuota), StragglerAction::kReplace);
}

TEST_F(PlanStragglersTest, NodeInTroubleIsEvidence) {
  api::Straggler& found = world.report->stragglers->front();
  found.part = "transfer";
  found.cause = api::StragglerCause::kUnknown;
  world.host_troubles = {{"node-a", "condition MemoryPressure"}, {"node-b", ""}};
  look(minutes(5));
  EXPECT_EQ(straggler().node_trouble, "") << "it is on the other node";
  EXPECT_EQ(straggler().action, StragglerAction::kReport) << "perhaps a link";
  world.host_troubles["node-b"] = "condition NetworkUnavailable";
  look();
  EXPECT_EQ(straggler().node_trouble, "node node-b has condition NetworkUnavailable");
  EXPECT_TRUE(straggler().message.ends_with(straggler().node_trouble));
  EXPECT_EQ(straggler().action, StragglerAction::kReplace);
}

TEST_F(PlanStragglersTest, NodesOfBothEndsOfASlowLinkAreToldOf) {
  api::Straggler& found = world.report->stragglers->front();
  found.kind = api::StragglerKind::kSlowLink;
  found.peer_pod = "fashion-worker-0-0";
  world.host_troubles = {{"node-a", "condition NetworkUnavailable"}};
  look();
  EXPECT_EQ(straggler().node_trouble, "node node-a has condition NetworkUnavailable");
  EXPECT_EQ(straggler().action, StragglerAction::kReport);
}

TEST_F(PlanStragglersTest, CoordinatorsAnswerToAStragglerStands) {
  world.job.spec.stragglers.action = api::StragglerPolicyAction::kRebalance;
  world.report->stragglers->front().action = StragglerAction::kRebalance;
  world.report->stragglers->front().why = "worker-1 takes 40 of 256 samples";
  look(minutes(5));
  EXPECT_EQ(straggler().action, StragglerAction::kRebalance);
  EXPECT_EQ(straggler().why, "worker-1 takes 40 of 256 samples");
  EXPECT_THAT(told(), IsEmpty()) << "nobody is replaced";
}

TEST_F(PlanStragglersTest, NewSharesAreToldOfOnce) {
  const auto events = [](const Plan& made) {
    return std::ranges::count_if(made.actions, [](const Action& action) {
      const auto* const event = std::get_if<RecordEvent>(&action);
      return event != nullptr && event->event.reason == kStragglerRebalanced;
    });
  };
  const api::Rebalance shares{
      .generation = Generation{2}, .samples = {72, 40, 72, 72}, .message = "they follow speed"};
  world.report->rebalance = shares;
  EXPECT_EQ(events(look()), 1);
  EXPECT_EQ(world.job.status.view.rebalance, shares);
  EXPECT_EQ(events(look(seconds(1))), 0);
  world.report->rebalance->generation = Generation{3};
  EXPECT_EQ(events(look()), 1);
}

TEST_F(PlanStragglersTest, SharesOfAnotherCoordinatorsViewAreKeptWhileMembersHaveThem) {
  world.report->rebalance = api::Rebalance{.generation = Generation{2}, .samples = {72, 40, 72, 72}};
  look();
  world.report->rebalance.reset();
  for (ReportedMember& member : world.report->members) member.telemetry.samples = member.rank == 1 ? 40 : 72;
  look();
  EXPECT_TRUE(world.job.status.view.rebalance);
  for (ReportedMember& member : world.report->members) member.telemetry.samples = 64;
  look();
  EXPECT_FALSE(world.job.status.view.rebalance);
}

// The same job before its first view: the coordinator has checked the members, and worker-1 has failed.
class PlanPreflightTest : public PlanStragglersTest {
 protected:
  PlanPreflightTest() {
    world.job.spec.preflight.emplace();
    world.job.status.phase = api::Phase::kStarting;
    world.job.status.stragglers.clear();
    world.report->stragglers.reset();
    world.report->state = JobState::kForming;
    world.report->generation = {};
    for (ReportedMember& member : world.report->members) member.rank = -1;
  }
  void fail(api::PreflightOutcome outcome) {
    api::UnfitMember member{.index = 1,
                            .pod = "fashion-worker-1-0",
                            .host = "fashion-worker-1-0",
                            .ms = 30,
                            .typical_ms = 10,
                            .factor = 3,
                            .excluded = outcome == api::PreflightOutcome::kExcluded};
    world.report->preflight =
        api::Preflight{.outcome = outcome, .members = 4, .seconds = 1, .unfit = {member}};
    if (!member.excluded) return;
    world.report->lost = {{.fault = {.kind = api::FaultKind::kUnfit,
                                     .index = 1,
                                     .pod = "fashion-worker-1-0",
                                     .cause = api::RestartCause::kUnfit}}};
  }
  std::int64_t events(const Plan& made, const char* reason) const {
    return std::ranges::count_if(actions_of<RecordEvent>(made),
                                 [&](const RecordEvent& each) { return each.event.reason == reason; });
  }
};

TEST_F(PlanPreflightTest, AnExcludedMembersNextPodKeepsAwayFromItsNode) {
  fail(api::PreflightOutcome::kExcluded);
  look();
  ASSERT_EQ(told().size(), 1U);
  EXPECT_EQ(told()[0].outcome, ReplacementOutcome::kExcluded) << "nobody has the place yet";
  EXPECT_EQ(told()[0].cause, api::StragglerCause::kUnfit);
  EXPECT_EQ(told()[0].pod, "fashion-worker-1-0");
  EXPECT_EQ(told()[0].host, "node-b");
  EXPECT_EQ(told()[0].successor, "fashion-worker-1-1");
  EXPECT_EQ(told()[0].factor, 0) << "a step's is another matter";
  const Plan made = look();
  const auto created = actions_of<CreatePod>(made);
  ASSERT_EQ(created.size(), 1U);
  EXPECT_EQ(created[0].spec.name, "fashion-worker-1-1");
  EXPECT_THAT(created[0].spec.shunned_hosts, ElementsAre("node-b"));
  EXPECT_FALSE(runs("fashion-worker-1-0"));
  look();
  EXPECT_EQ(told().size(), 1U) << "once";
}

TEST_F(PlanPreflightTest, AnExclusionUsesTheBudgetOfStragglersAndNotBackoffLimit) {
  world.job.spec.run_policy.backoff_limit = 0;
  EXPECT_EQ(replacements_left(world.job, world.now), 3);
  fail(api::PreflightOutcome::kExcluded);
  look();
  EXPECT_EQ(world.job.status.phase, api::Phase::kStarting);
  EXPECT_EQ(replacements_left(world.job, world.now), 2);
  EXPECT_EQ(replacements_left(world.job, world.now + hours(1)), 3);
  ASSERT_EQ(world.job.status.restarts.by_cause.size(), 1U);
  EXPECT_EQ(world.job.status.restarts.by_cause[0].cause, api::RestartCause::kUnfit);
}

TEST_F(PlanPreflightTest, TheResultIsToldOnceWithTheNodesThatTheClusterKnows) {
  fail(api::PreflightOutcome::kReported);
  EXPECT_EQ(events(look(), kPreflightFailed), 1);
  ASSERT_TRUE(world.job.status.preflight);
  EXPECT_EQ(world.job.status.preflight->unfit[0].host, "node-b");
  EXPECT_EQ(world.job.status.preflight->at, world.now);
  EXPECT_EQ(events(look(seconds(1)), kPreflightFailed), 0);
  std::erase_if(world.pods, [](const cluster::Pod& pod) { return pod.spec.name == "fashion-worker-1-0"; });
  EXPECT_EQ(events(look(seconds(1)), kPreflightFailed), 0);
}

TEST_F(PlanPreflightTest, APassIsToldToo) {
  world.report->preflight = api::Preflight{.members = 4, .seconds = 1, .compute_ms = 10, .link_ms = 5};
  EXPECT_EQ(events(look(), kPreflightPassed), 1);
  EXPECT_EQ(world.job.status.preflight->outcome, api::PreflightOutcome::kPassed);
}

TEST_F(PlanStragglersTest, AStragglerIsToldOfWithItsNode) {
  world.report->stragglers->front().host = "fashion-worker-1";
  look();
  EXPECT_EQ(straggler().host, "node-b");
}

TEST_F(PlanStragglersTest, AJobThatStartsAgainHasNone) {
  ASSERT_FALSE(world.job.status.stragglers.empty());
  world.report.reset();
  world.job.status.phase = api::Phase::kRestarting;
  look();
  EXPECT_THAT(world.job.status.stragglers, IsEmpty());
}

TEST_F(PlanStragglersTest, AJobThatIgnoresStragglersIsToldOfNone) {
  world.job.spec.stragglers.action = api::StragglerPolicyAction::kIgnore;
  look();
  EXPECT_THAT(world.job.status.stragglers, IsEmpty());
}

}  // namespace
}  // namespace paceline::plan
