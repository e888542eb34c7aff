#include "controller/reconcile/coordinators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controller/plan/rules.h"
#include "controller/reconcile/report_adapter.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/small_job.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::SizeIs;

StoredJob stored(std::string uid) {
  return {.job = testing::small_job("fashion"), .uid = std::move(uid)};
}

// A cluster that keeps each job's first token, as Kubernetes does.
class TokenCluster final : public cluster::Cluster {
 public:
  explicit TokenCluster(const Clock& clock) : rest_(clock) {}
  absl::StatusOr<std::string> ensure_job(const cluster::JobObjects& job) override {
    if (!failure_.ok()) return failure_;
    return tokens_.try_emplace(job.job_uid, job.token).first->second;
  }
  absl::StatusOr<cluster::Pod> create_pod(const cluster::PodSpec& spec) override {
    return rest_.create_pod(spec);
  }
  absl::Status delete_pod(const std::string& ns, const std::string& name, const std::string& uid,
                          Duration grace) override {
    return rest_.delete_pod(ns, name, uid, grace);
  }
  absl::StatusOr<std::vector<cluster::Pod>> list_pods(const std::string& ns,
                                                      const std::string& job) override {
    return rest_.list_pods(ns, job);
  }
  absl::Status record_event(const cluster::Event& event) override { return rest_.record_event(event); }
  void watch(OnChange on_change) override { rest_.watch(std::move(on_change)); }
  absl::StatusOr<std::string> tail_log(const cluster::Pod& pod, int lines) override {
    return rest_.tail_log(pod, lines);
  }
  std::map<std::string, std::string> tokens_;
  absl::Status failure_;

 private:
  testing::FakeCluster rest_;
};

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

  testing::FakeClock clock_;
  TokenCluster cluster_{clock_};
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
  EXPECT_EQ(report->phase, plan::ReportPhase::kForming);
  EXPECT_EQ(coordinators_->pod_environment("default/fashion")["PACELINE_COORDINATOR"], "paceline:7070");
  EXPECT_EQ(token(), cluster_.tokens_["u1"]);
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
  cluster::Pod pod;
  pod.uid = "p1";
  pod.spec.name = "fashion-worker-0-0";
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
  ASSERT_EQ(coordinators_->report("default/fashion")->phase, plan::ReportPhase::kStopped);
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
  EXPECT_EQ(coordinators_->report("default/fashion")->phase, plan::ReportPhase::kStopped)
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
  EXPECT_EQ(coordinators_->report("default/fashion")->phase, plan::ReportPhase::kForming);
}

TEST(ReportAdapterTest, TheNewestCheckpointIsKnownWhileMembersTrain) {
  coordinator::Report report;
  EXPECT_EQ(to_plan(report).checkpoint_path, "");
  report.last_checkpoint.emplace().path = "/paceline/checkpoints";
  EXPECT_EQ(to_plan(report).checkpoint_path, "/paceline/checkpoints");
  report.checkpoint_path = "/last";
  EXPECT_EQ(to_plan(report).checkpoint_path, "/last") << "rank 0 named it as it left";
  EXPECT_FALSE(to_plan(report).last_save);
  report.told_checkpoint = coordinator::CheckpointRecord{.step = 7, .error = "the disk is full"};
  ASSERT_TRUE(to_plan(report).last_save);
  EXPECT_EQ(to_plan(report).last_save->step, 7);
  EXPECT_EQ(to_plan(report).last_save->error, "the disk is full");
}

// A member says that it is at its end however it ends; only its goodbye says whether its work is done.
TEST(ReportAdapterTest, WhoLeavesWithItsWorkUndoneIsNeverCalledFinished) {
  for (const bool finished : {false, true}) {
    coordinator::Report report;
    report.state = coordinator::JobState::kRunning;
    report.generation.value = 1;
    report.members.push_back({.role = Role::kWorker, .index = 1, .finished = finished, .member_id = "m"});
    report.members[0].phase = coordinator::Phase::kFinished;
    plan::Observed world;
    world.job = stored("u1").job;
    world.job.status.phase = api::Phase::kRunning;
    world.report = to_plan(report);
    for (const int index : {0, 1}) {
      cluster::Pod pod;
      pod.spec.name = str_cat("fashion-worker-", index, "-0");
      pod.spec.index = index;
      pod.phase = cluster::PodPhase::kRunning;
      world.pods.push_back(pod);
    }
    StoredJob next = stored("u1");
    next.job.status = plan::plan(world).status;
    ASSERT_THAT(next.job.status.members, SizeIs(2));
    EXPECT_EQ(next.job.status.members[1].phase, finished ? plan::kFinishedPhase : "leaving");
    const CoordinatorsOptions options;
    const auto core = core_config("default/fashion", next, "token", options);
    ASSERT_TRUE(core.ok());
    EXPECT_THAT(core->finished, SizeIs(finished ? 1 : 0)) << "another controller's coordinator";
  }
}

TEST(ReportAdapterTest, StalenessIsWholeAndNoLongerThanItIs) {
  coordinator::Report report;
  report.members.resize(1);
  report.members[0].member_id = "uid-0";
  coordinator::StalenessReport& staleness = report.members[0].staleness.emplace();
  staleness = {.applied = 7,
               .dropped = 2,
               .histogram = std::vector<std::int64_t>(32),
               .mean = 0.5004,
               .max = 3,
               .wait = std::chrono::microseconds(1500300)};
  EXPECT_TRUE(to_plan(report).members.at(0).staleness->histogram.empty());
  staleness.histogram[0] = 4;
  staleness.histogram[3] = 3;
  const api::StalenessStatus told = to_plan(report).members.at(0).staleness.value();
  EXPECT_EQ(told, (api::StalenessStatus{.applied = 7,
                                        .dropped = 2,
                                        .max = 3,
                                        .mean = 0.5,
                                        .wait_seconds = 1.5,
                                        .histogram = {4, 0, 0, 3}}));
  staleness.histogram[31] = 1;
  EXPECT_EQ(to_plan(report).members.at(0).staleness->histogram.size(), 32u);
}

TEST(CoreConfigTest, RankZeroSavesAsLongAsItsPodMayLive) {
  const CoordinatorsOptions options;
  const auto save_timeout = [&options](std::optional<std::int64_t> chief,
                                       std::optional<std::int64_t> worker) {
    StoredJob job = stored("u1");
    if (chief) job.job.spec.replica_specs.chief = api::ReplicaSpec{1, {}, {}};
    if (chief) job.job.spec.replica_specs.chief->termination_grace_seconds = chief;
    job.job.spec.replica_specs.worker->termination_grace_seconds = worker;
    return core_config("default/fashion", job, "token", options).value().save_timeout;
  };
  const Duration usual = coordinator::CoreConfig().save_timeout;
  EXPECT_EQ(save_timeout({}, {}), usual);
  EXPECT_EQ(save_timeout({}, 60), usual) << "its pod goes before";
  EXPECT_EQ(save_timeout({}, 3600), std::chrono::hours(1));
  EXPECT_EQ(save_timeout(3600, 7200), std::chrono::hours(1)) << "the chief is rank 0";
}

TEST_F(CoordinatorsTest, APodThatWaitsLongIsNotMissing) {
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", stored("u1")).ok());
  clock_.advance(std::chrono::hours(48));
  cluster::Pod nobodys;
  nobodys.spec.index = 9;
  nobodys.phase = cluster::PodPhase::kFailed;
  coordinators_->pods_seen("default/fashion", {nobodys});  // whatever is told makes it look at the time
  const auto report = coordinators_->report("default/fashion");
  EXPECT_EQ(report->phase, plan::ReportPhase::kForming);
  EXPECT_FALSE(report->culprit);
}

// Both members of the job train, watched by a core that is made with these options.
class WatchedMembers {
 public:
  explicit WatchedMembers(const CoordinatorsOptions& options)
      : core_(core_config("default/fashion", stored("u1"), "a token", options).value(), now_) {
    for (const int index : {0, 1}) {
      v1::Hello hello;
      hello.set_protocol_version(coordinator::kProtocolVersion);
      hello.set_member_id(str_cat("m", index));
      hello.set_job("default/fashion");
      hello.set_role(v1::ROLE_WORKER);
      hello.set_index(static_cast<std::uint32_t>(index));
      hello.set_pod(str_cat("fashion-worker-", index, "-0"));
      core_.step(coordinator::Attached{stream_of(index), hello}, now_);
    }
    pass(2s, {0, 1});
    EXPECT_FALSE(have_failed());
  }
  // Only these are heard.
  void pass(Duration time, const std::vector<int>& heard) {
    for (const TimePoint until = now_ + time; now_ < until;) {
      now_ += 100ms;
      core_.step(coordinator::Tick{}, now_);
      for (const int index : heard) {
        v1::MemberMessage message;
        message.mutable_heartbeat()->set_generation(core_.report(now_).generation.value);
        message.mutable_heartbeat()->set_phase(v1::TRAINING);
        core_.step(coordinator::Received{stream_of(index), message}, now_);
      }
    }
  }
  void end_stream(int index) {
    core_.step(coordinator::StreamEnded{stream_of(index), "the connection broke"}, now_);
  }
  bool have_failed() const { return core_.state() != coordinator::JobState::kRunning; }

 private:
  static coordinator::StreamId stream_of(int index) { return {static_cast<std::uint64_t>(index) + 1}; }
  TimePoint now_{100s};
  coordinator::CoordinatorCore core_;
};

// The defaults are what docs/protocol.md says of Kubernetes.
TEST(CoreConfigTest, WhatANetworkDoesWithinSecondsIsNoLoss) {
  EXPECT_EQ(CoordinatorsOptions().heartbeat_timeout, 5s);
  EXPECT_EQ(CoordinatorsOptions().rejoin_grace, 5s);
  EXPECT_EQ(CoordinatorsOptions().most_silence, 30s);
  for (const Duration more : {0s, 4s}) {
    CoordinatorsOptions options;
    options.heartbeat_timeout += more;
    options.rejoin_grace += 2 * more;
    options.most_silence += 3 * more;

    WatchedMembers silent(options);
    silent.pass(options.heartbeat_timeout, {0});
    EXPECT_FALSE(silent.have_failed());
    silent.pass(200ms, {0});
    EXPECT_TRUE(silent.have_failed());

    WatchedMembers broken(options);
    broken.end_stream(1);
    broken.pass(options.rejoin_grace - 100ms, {0});
    EXPECT_FALSE(broken.have_failed());
    broken.pass(200ms, {0});
    EXPECT_TRUE(broken.have_failed());

    WatchedMembers all_late(options);
    all_late.pass(options.most_silence, {});
    EXPECT_FALSE(all_late.have_failed());
    all_late.pass(200ms, {});
    EXPECT_TRUE(all_late.have_failed());
  }
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
  EXPECT_EQ(report->lost[0].index, 1);
}

// Rank 0 may be finishing alone when a controller takes over: who has finished before is not to blame for
// what comes later.
TEST_F(CoordinatorsTest, WhoseProcessHasEndedWellInAJobThatTrainedHasFinished) {
  const auto see_end = [&](Role role, int index, int code) {
    cluster::Pod pod;
    pod.spec.role = role;
    pod.spec.index = index;
    pod.spec.name = str_cat("fashion-", role_name(role), "-", index, "-0");
    pod.uid = pod.spec.name;
    pod.phase = code == 0 ? cluster::PodPhase::kSucceeded : cluster::PodPhase::kFailed;
    pod.exit_code = code;
    coordinators_->pods_seen("default/fashion", {pod});
    clock_.advance(std::chrono::seconds(1));
  };
  for (const bool trained : {false, true}) {
    begin();
    StoredJob job = stored("u1");
    if (trained) job.job.status.phase = api::Phase::kRunning;
    ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
    see_end(Role::kWorker, 1, 0);
    see_end(Role::kWorker, 0, 7);
    see_end(Role::kEvaluator, 0, 0);  // nobody's: it only makes the coordinator look
    const auto report = coordinators_->report("default/fashion");
    ASSERT_TRUE(report && report->culprit);
    EXPECT_EQ(report->culprit->index, trained ? 0 : 1);
  }
}

// Servers end when they are told that training is over: by this coordinator, if they find it later.
TEST_F(CoordinatorsTest, WhereRankZeroHasEndedWellTheJobHasFinished) {
  StoredJob job = stored("u1");
  job.job.status.phase = api::Phase::kRunning;
  job.job.status.progress.step = 10;
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
  plan::Observed world;
  world.job = job.job;
  for (const int index : {0, 1}) {
    cluster::Pod pod;
    pod.uid = pod.spec.name = str_cat("fashion-worker-", index, "-0");
    pod.spec.index = index;
    pod.phase = index == 0 ? cluster::PodPhase::kSucceeded : cluster::PodPhase::kRunning;
    if (index == 0) pod.exit_code = 0;
    world.pods.push_back(pod);
  }
  coordinators_->pods_seen("default/fashion", world.pods);
  world.report = coordinators_->report("default/fashion");
  ASSERT_TRUE(world.report);
  EXPECT_EQ(world.report->phase, plan::ReportPhase::kFinished);
  EXPECT_FALSE(world.report->culprit);
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
      EXPECT_THAT(report->reason, ::testing::HasSubstr(finished ? "for 1 members" : "for 2 members"))
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
    if (asynchronous) {
      job.job.spec.strategy.type = api::StrategyType::kParameterServer;
      job.job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
      job.job.spec.replica_specs.ps = api::ReplicaSpec{};
    }
    ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
    const auto tell = [&](const std::vector<std::string>& names) {
      for (int i = 0; i < 2; ++i) {  // the second time it only looks at the time
        coordinators_->pods_gone("default/fashion", names);
        cluster::Pod nobodys;
        nobodys.uid = str_cat(asynchronous, names[0], i);
        nobodys.spec.attempt = 1;
        nobodys.spec.index = 9;
        nobodys.phase = cluster::PodPhase::kFailed;
        coordinators_->pods_seen("default/fashion", {nobodys});
        clock_.advance(1s);
      }
      return *coordinators_->report("default/fashion");
    };
    const plan::JobReport others = tell({"fashion-worker-1-0", "fashion-worker-7-1", "bags-worker-1-1"});
    EXPECT_THAT(others.lost, SizeIs(0)) << "of another attempt, or of nobody";
    EXPECT_FALSE(others.culprit);
    const plan::JobReport report = tell({"fashion-worker-1-1"});
    EXPECT_THAT(report.lost, SizeIs(asynchronous ? 1 : 0));
    EXPECT_EQ(report.culprit.has_value(), !asynchronous);
    EXPECT_EQ(report.phase, asynchronous ? plan::ReportPhase::kForming : plan::ReportPhase::kFailed);
  }
}

// Its node died while nobody led: its pod stays, and its member doesn't come.
TEST_F(CoordinatorsTest, AWorkerThatDoesNotComeIsLostOnceThePlannerHasWaited) {
  for (const std::int64_t index : {0, 1}) {
    begin();
    StoredJob job = stored("u1");
    job.job.status.phase = api::Phase::kRunning;
    job.job.spec.strategy.type = api::StrategyType::kParameterServer;
    job.job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
    job.job.spec.replica_specs.ps = api::ReplicaSpec{};
    ASSERT_TRUE(coordinators_->job_seen("default/fashion", job).ok());
    const auto tell = [&] {
      coordinators_->members_absent(
          "default/fashion", {{Role::kWorker, static_cast<int>(index),
                               str_cat("fashion-worker-", index, "-0"), "it did not join within 60 s"}});
      return *coordinators_->report("default/fashion");
    };
    const plan::JobReport report = tell();
    ASSERT_THAT(report.lost, SizeIs(index == 1 ? 1 : 0));
    EXPECT_EQ(report.culprit.has_value(), index == 0) << "rank 0 can't be spared";
    EXPECT_EQ(report.phase, index == 1 ? plan::ReportPhase::kForming : plan::ReportPhase::kFailed);
    if (index == 1) {
      EXPECT_THAT(report.lost[0].message, ::testing::HasSubstr("worker-1 never attached: it did not join"));
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
  EXPECT_TRUE(cluster_.tokens_.empty()) << "and no token";
}

TEST_F(CoordinatorsTest, ASecretThatCanNotBeHadIsAnError) {
  cluster_.failure_ = absl::PermissionDeniedError("no");
  EXPECT_EQ(coordinators_->job_seen("default/fashion", stored("u1")).code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(coordinators_->size(), 0u);
}

TEST_F(CoordinatorsTest, APodsEndIsToldOnce) {
  ASSERT_TRUE(coordinators_->job_seen("default/fashion", stored("u1")).ok());
  cluster::Pod pod;
  pod.spec.name = "fashion-worker-1-0";
  pod.spec.index = 1;
  pod.uid = "p1";
  pod.phase = cluster::PodPhase::kFailed;
  pod.exit_code = 7;
  coordinators_->pods_seen("default/fashion", {pod});
  coordinators_->pods_seen("default/fashion", {pod});
  EXPECT_EQ(coordinators_->report("default/fashion")->phase, plan::ReportPhase::kForming)
      << "the verdict takes its time";
}

}  // namespace
}  // namespace paceline::reconcile
