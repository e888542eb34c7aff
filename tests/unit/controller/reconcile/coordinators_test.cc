#include "controller/reconcile/coordinators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/plan/rules.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/small_job.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::SizeIs;

StoredJob stored(std::string uid) {
  return {.job = small_job("fashion"), .uid = std::move(uid)};
}

void make_asynchronous(api::Spec& spec) {
  spec.strategy.type = api::StrategyType::kParameterServer;
  spec.strategy.synchronization = api::Synchronization::kAsynchronous;
  spec.replica_specs.ps = api::ReplicaSpec{};
}

cluster::Pod pod_of(Role role, int index, cluster::PodPhase phase) {
  cluster::Pod pod;
  pod.spec.role = role;
  pod.spec.index = index;
  pod.spec.name = pod.uid = str_cat("fashion-", role_name(role), "-", index, "-0");
  pod.phase = phase;
  return pod;
}

class CoordinatorsTest : public ::testing::Test {
 protected:
  CoordinatorsTest() { begin(); }
  void begin() {
    coordinators_.reset();
    CoordinatorsOptions options;
    options.advertised = "paceline:7070";
    auto started = Coordinators::start(std::move(options), cluster_, clock_, Logger::none(),
                                       [this](const std::string& key) { notified_.lock()->push_back(key); });
    ASSERT_TRUE(started.ok()) << started.status();
    coordinators_ = *std::move(started);
  }
  std::string token() { return coordinators_->pod_environment("default/fashion")["PACELINE_TOKEN"]; }

  FakeClock clock_;
  FakeCluster cluster_{clock_};
  Guarded<std::vector<std::string>> notified_;
  std::unique_ptr<Coordinators> coordinators_;  // last: it uses all of the above
};

TEST_F(CoordinatorsTest, AJobThatIsSeenHasOneCoordinator) {
  EXPECT_FALSE(coordinators_->report("default/fashion"));
  EXPECT_TRUE(coordinators_->pod_environment("default/fashion").empty());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(coordinators_->job_seen("default/fashion", stored("u1")).ok());
  EXPECT_EQ(coordinators_->size(), 1u);
  const auto report = coordinators_->report("default/fashion");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->state, plan::JobState::kForming);
  EXPECT_EQ(coordinators_->pod_environment("default/fashion")["PACELINE_COORDINATOR"], "paceline:7070");
  EXPECT_EQ(token(), cluster_.ensured().at(0).token);
  EXPECT_THAT(token(), SizeIs(64));
  coordinators_->job_over("default/fashion");
  coordinators_->job_over("default/fashion");
  EXPECT_EQ(coordinators_->size(), 0u);
}

TEST_F(CoordinatorsTest, TheTokenOutlivesTheController) {
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", stored("u1")).ok());
  const std::string before = token();
  begin();
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", stored("u1")).ok());
  EXPECT_EQ(token(), before);
}

TEST_F(CoordinatorsTest, AJobOfTheSameNameIsAnotherOne) {
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", stored("u1")).ok());
  const std::string before = token();
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", stored("u2")).ok());
  EXPECT_EQ(coordinators_->size(), 1u);
  EXPECT_NE(token(), before);
}

TEST_F(CoordinatorsTest, WhatIsOverOrSomebodyElsesHasNone) {
  StoredJob deleted = stored("u1"), finished = stored("u2"), managed = stored("u3");
  deleted.deleted = true;
  finished.job.status.phase = api::Phase::kSucceeded;
  EXPECT_TRUE(coordinators_->job_seen("default/fashion", deleted).ok());
  EXPECT_TRUE(coordinators_->job_seen("default/fashion", finished).ok());
  managed.job.spec.run_policy.managed_by = "kueue.x-k8s.io/multikueue";
  EXPECT_TRUE(coordinators_->job_seen("default/fashion", managed).ok());
  EXPECT_EQ(coordinators_->size(), 0u);
}

// A listener is told to stop as anybody is, and has nothing to end.
TEST_F(CoordinatorsTest, ProgramOfItsOwnHasAListenerWhereTheJobAsksForIt) {
  StoredJob job = stored("u1");
  job.job.spec.training.reset();
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->size(), 0u);
  EXPECT_TRUE(coordinators_->pod_environment("default/fashion").empty());
  job.job.spec.stragglers.told_by_program = true;
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_FALSE(coordinators_->pod_environment("default/fashion").empty());
  EXPECT_EQ(coordinators_->report("default/fashion")->state, plan::JobState::kRunning);
  coordinators_->stop("default/fashion", {"the job is suspended"});
  ++job.job.status.restarts.attempt;
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->report("default/fashion")->attempt, 1);
}

TEST_F(CoordinatorsTest, TheNextAttemptHasAnotherOne) {
  StoredJob job = stored("u1");
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->report("default/fashion")->attempt, 0);
  const std::string before = token();
  job.job.status.restarts.attempt = 3;
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->size(), 1u);
  EXPECT_EQ(coordinators_->report("default/fashion")->attempt, 3);
  EXPECT_EQ(token(), before) << "the job's, not the attempt's";
}

TEST_F(CoordinatorsTest, MembersThatWereToldToStopHaveTheirCoordinatorUntilTheyHaveLeft) {
  StoredJob job = stored("u1");
  cluster::Pod pod = pod_of(Role::kWorker, 0, cluster::PodPhase::kPending);
  const auto attempt = [&] { return coordinators_->report("default/fashion")->attempt; };
  const auto begin_next = [&] {
    ++job.job.status.restarts.attempt;
    coordinators_->pods_seen("default/fashion", {pod});
    EXPECT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  };
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  coordinators_->stop("default/fashion", {"the job is resized", true});
  begin_next();
  EXPECT_EQ(attempt(), 0) << "its last words have not been heard";
  ASSERT_EQ(coordinators_->report("default/fashion")->state, plan::JobState::kStopped);
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(attempt(), 0) << "they have, but nobody has written them down";
  pod.phase = cluster::PodPhase::kFailed;
  coordinators_->pods_seen("default/fashion", {pod});
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(attempt(), 0) << "even though it is all over";
  coordinators_->last_words_kept("default/fashion", 7);
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(attempt(), 0) << "another attempt's";
  notified_.lock()->clear();
  coordinators_->last_words_kept("default/fashion", 0);
  coordinators_->last_words_kept("default/fashion", 0);
  EXPECT_THAT(*notified_.lock(), ElementsAre("default/fashion")) << "the next attempt may begin";
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(attempt(), 1);
  coordinators_->last_words_kept("default/fashion", 1);
  pod.phase = cluster::PodPhase::kRunning;
  pod.spec.attempt = 1;
  begin_next();
  EXPECT_EQ(attempt(), 2) << "nobody was told to stop: what failed has said all";
}

TEST_F(CoordinatorsTest, ASuspendedJobHasNoneWhenItsMembersHaveLeft) {
  StoredJob job = stored("u1");
  job.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->size(), 0u) << "it begins suspended";
  job.job.spec.run_policy.suspend = false;
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  ASSERT_EQ(coordinators_->size(), 1u);
  job.job.spec.run_policy.suspend = true;
  job.job.status.phase = api::Phase::kSuspended;
  job.job.status.restarts.attempt = 1;
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->size(), 1u) << "its members may be saving what they have done";
  coordinators_->stop("default/fashion", {"the job is suspended"});
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->report("default/fashion")->state, plan::JobState::kStopped)
      << "what they saved as they left is its last word";
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->size(), 1u) << "it stands in no status yet";
  coordinators_->last_words_kept("default/fashion", 0);
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->size(), 0u) << "nobody is attached any more";
  job.job.spec.run_policy.suspend = false;
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->report("default/fashion")->attempt, 1);
}

TEST_F(CoordinatorsTest, WhoWasStoppedBeforeItHadMembersBeginsAnew) {
  StoredJob job = stored("u1");
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  coordinators_->stop("default/fashion", {"the job is suspended"});
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->report("default/fashion")->state, plan::JobState::kForming);
}

TEST_F(CoordinatorsTest, APodThatWaitsLongIsNotMissing) {
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", stored("u1")).ok());
  clock_.advance(std::chrono::hours(48));
  // A pod of nobody makes it look at the time.
  coordinators_->pods_seen("default/fashion", {pod_of(Role::kWorker, 9, cluster::PodPhase::kFailed)});
  const auto report = coordinators_->report("default/fashion");
  EXPECT_EQ(report->state, plan::JobState::kForming);
  EXPECT_FALSE(report->fault);
}

TEST_F(CoordinatorsTest, ServersAreMembersAndAnEvaluatorMayAttach) {
  StoredJob job = stored("u1");
  job.job.spec.replica_specs.ps = api::ReplicaSpec{.replicas = 2};
  job.job.spec.replica_specs.evaluator = api::ReplicaSpec{};
  const auto roles = expected_roles(job.job);
  ASSERT_EQ(roles.size(), 3u);
  EXPECT_EQ(roles[1].role, Role::kServer);
  EXPECT_EQ(roles[1].count, 2);
  EXPECT_EQ(roles[2].role, Role::kEvaluator);
}

TEST_F(CoordinatorsTest, WhoWasLostInThisAttemptIsKnownFromTheStatus) {
  StoredJob job = stored("u1");
  job.job.spec.strategy.type = api::StrategyType::kParameterServer;
  job.job.spec.replica_specs.ps = api::ReplicaSpec{};
  job.job.status.restarts.attempt = 1;
  api::MemberStatus lost{.role = Role::kWorker, .index = 1};
  lost.pod = "fashion-worker-1-1";
  lost.phase = plan::kLostPhase;
  api::MemberStatus before = lost;
  before.index = 0;
  before.pod = "fashion-worker-0-0";
  job.job.status.members = {before, lost};
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  const auto report = coordinators_->report("default/fashion");
  ASSERT_TRUE(report);
  ASSERT_EQ(report->lost.size(), 1u);
  EXPECT_EQ(report->lost[0].fault.index, 1);
}

// Rank 0 may be finishing alone when a controller takes over: one that has finished before is not at fault
// for what comes later.
TEST_F(CoordinatorsTest, WhoseProcessHasEndedWellInAJobThatTrainedHasFinished) {
  const auto see_end = [&](Role role, int index, int code) {
    using enum cluster::PodPhase;
    cluster::Pod pod = pod_of(role, index, code == 0 ? kSucceeded : kFailed);
    pod.exit_code = code;
    coordinators_->pods_seen("default/fashion", {pod});
    clock_.advance(std::chrono::seconds(1));
  };
  for (const bool trained : {false, true}) {
    begin();
    StoredJob job = stored("u1");
    if (trained) job.job.status.phase = api::Phase::kRunning;
    job.job.spec.replica_specs.worker->container = api::Container{.command = {"theirs"}};
    ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
    see_end(Role::kWorker, 1, 0);
    see_end(Role::kWorker, 0, 7);
    see_end(Role::kEvaluator, 0, 0);  // nobody's: it only makes the coordinator look
    const auto report = coordinators_->report("default/fashion");
    ASSERT_TRUE(report && report->fault);
    EXPECT_EQ(report->fault->index, trained ? 0 : 1);
  }
}

TEST_F(CoordinatorsTest, OurOwnProgramThatHasEndedWellHasFinishedThoughTheStatusTellsOfNoTraining) {
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", stored("u1")).ok());
  cluster::Pod pod = pod_of(Role::kWorker, 1, cluster::PodPhase::kSucceeded);
  pod.exit_code = 0;
  coordinators_->pods_seen("default/fashion", {pod});
  clock_.advance(std::chrono::seconds(1));
  const auto report = coordinators_->report("default/fashion");
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(report->fault.has_value());
}

// Servers end when they are told that training is over: by this coordinator, if they find it later.
TEST_F(CoordinatorsTest, WhereRankZeroHasEndedWellTheJobHasFinished) {
  StoredJob job = stored("u1");
  job.job.status.phase = api::Phase::kRunning;
  job.job.status.progress.step = 10;
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  plan::Observed world;
  world.job = job.job;
  world.pods = {pod_of(Role::kWorker, 0, cluster::PodPhase::kSucceeded),
                pod_of(Role::kWorker, 1, cluster::PodPhase::kRunning)};
  world.pods[0].exit_code = 0;
  coordinators_->pods_seen("default/fashion", world.pods);
  world.report = coordinators_->report("default/fashion");
  ASSERT_TRUE(world.report);
  EXPECT_EQ(world.report->state, plan::JobState::kFinished);
  EXPECT_FALSE(world.report->fault);
  EXPECT_EQ(plan::plan(world).requeue_after, world.limits.refresh) << "the others have time to hear of it";
  EXPECT_TRUE(plan::plan(world).actions.empty());
  world.pods[1].phase = cluster::PodPhase::kSucceeded;
  EXPECT_EQ(plan::plan(world).status.phase, api::Phase::kSucceeded);
  EXPECT_THAT(plan::plan(world).status.message, ::testing::HasSubstr("after 10 steps"));
}

// Its pod may be deleted before another controller takes over, but the status has kept its last word.
TEST_F(CoordinatorsTest, WhoHadFinishedInThisAttemptIsKnownFromTheStatus) {
  for (const char* phase : {"Succeeded", "Finished", "Deleting", "Failed"}) {
    for (const std::int64_t attempt : {0, 1}) {
      begin();
      StoredJob job = stored("u1");
      job.job.status.phase = api::Phase::kRunning;
      job.job.status.restarts.attempt = attempt;
      api::MemberStatus member{.role = Role::kWorker, .index = 1};
      member.pod = "fashion-worker-1-1";
      member.phase = phase;
      job.job.status.members = {member};
      ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
      const auto report = coordinators_->report("default/fashion");
      ASSERT_TRUE(report);
      const bool finished =
          attempt == 1 && (phase == std::string("Succeeded") || phase == std::string("Finished"));
      EXPECT_THAT(report->reason, ::testing::HasSubstr(finished ? "for 1 member to" : "for 2 members"))
          << phase << ", attempt " << attempt;
    }
  }
}

// A worker's pod may be deleted while nobody leads: the next coordinator has no stream of it that could end.
TEST_F(CoordinatorsTest, AWorkerWhosePodIsGoneIsLostBeforeTheOthersAreGathered) {
  for (const bool asynchronous : {true, false}) {
    begin();
    StoredJob job = stored("u1");
    job.job.status.phase = api::Phase::kRunning;
    job.job.status.restarts.attempt = 1;
    if (asynchronous) make_asynchronous(job.job.spec);
    ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
    const auto tell = [&](const std::vector<std::string>& names) {
      for (int i = 0; i < 2; ++i) {  // the second time it only looks at the time
        coordinators_->pods_gone("default/fashion", names);
        cluster::Pod nobodys = pod_of(Role::kWorker, 9, cluster::PodPhase::kFailed);
        nobodys.uid = str_cat(asynchronous, names[0], i);
        nobodys.spec.attempt = 1;
        coordinators_->pods_seen("default/fashion", {nobodys});
        clock_.advance(1s);
      }
      return *coordinators_->report("default/fashion");
    };
    const plan::JobReport others = tell({"fashion-worker-1-0", "fashion-worker-7-1", "bags-worker-1-1"});
    EXPECT_THAT(others.lost, SizeIs(0)) << "of another attempt, or of nobody";
    EXPECT_FALSE(others.fault);
    const plan::JobReport report = tell({"fashion-worker-1-1"});
    EXPECT_THAT(report.lost, SizeIs(asynchronous ? 1 : 0));
    EXPECT_EQ(report.fault.has_value(), !asynchronous);
    EXPECT_EQ(report.state, asynchronous ? plan::JobState::kForming : plan::JobState::kFailed);
  }
}

// Its node died while nobody led: its pod stays, and its member doesn't come.
TEST_F(CoordinatorsTest, AWorkerThatDoesNotComeIsLostOnceThePlannerHasWaited) {
  for (const std::int64_t index : {0, 1}) {
    begin();
    StoredJob job = stored("u1");
    job.job.status.phase = api::Phase::kRunning;
    make_asynchronous(job.job.spec);
    ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
    const auto tell = [&] {
      coordinators_->members_absent("default/fashion", {{Role::kWorker,
                                                         static_cast<int>(index),
                                                         str_cat("fashion-worker-", index, "-0"),
                                                         {api::ObservationKind::kNotJoined, "60 s"}}});
      return *coordinators_->report("default/fashion");
    };
    const plan::JobReport report = tell();
    ASSERT_THAT(report.lost, SizeIs(index == 1 ? 1 : 0));
    EXPECT_EQ(report.fault.has_value(), index == 0) << "rank 0 can't be spared";
    EXPECT_EQ(report.state, index == 1 ? plan::JobState::kForming : plan::JobState::kFailed);
    if (index == 1) {
      const api::Fault& lost = report.lost[0].fault;
      EXPECT_EQ(lost.kind, api::FaultKind::kMissing);
      EXPECT_EQ(lost.pod, "fashion-worker-1-0");
      ASSERT_THAT(lost.evidence, SizeIs(1));
      EXPECT_EQ(lost.evidence[0], (api::Observation{api::ObservationKind::kNotJoined, "60 s"}));
    }
    notified_.lock()->clear();
    EXPECT_EQ(tell().lost.size(), report.lost.size());
    EXPECT_THAT(*notified_.lock(), SizeIs(0)) << "it is told once";
  }
}

TEST_F(CoordinatorsTest, AJobWithoutTrainingHasNone) {
  StoredJob job = stored("u1");
  job.job.spec.training.reset();
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  EXPECT_EQ(coordinators_->size(), 0u);
  EXPECT_TRUE(cluster_.ensured().empty()) << "and no token";
}

TEST_F(CoordinatorsTest, ASecretThatCanNotBeHadIsAnError) {
  cluster_.refuse_objects(absl::PermissionDeniedError("no"));
  EXPECT_EQ(coordinators_->job_seen("default/fashion", stored("u1")).code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(coordinators_->size(), 0u);
}

TEST_F(CoordinatorsTest, APodsEndIsToldOnce) {
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", stored("u1")).ok());
  cluster::Pod pod = pod_of(Role::kWorker, 1, cluster::PodPhase::kFailed);
  pod.exit_code = 7;
  coordinators_->pods_seen("default/fashion", {pod});
  coordinators_->pods_seen("default/fashion", {pod});
  EXPECT_EQ(coordinators_->report("default/fashion")->state, plan::JobState::kForming)
      << "the verdict takes its time";
}

}  // namespace
}  // namespace paceline::reconcile
