#include "controller/reconcile/coordinators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/api/parse.h"
#include "controller/plan/rules.h"
#include "controller/reconcile/report_adapter.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_cluster.h"

namespace paceline::reconcile {
namespace {

using ::testing::SizeIs;

constexpr char kText[] = R"(
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: fashion}
spec:
  replicaSpecs:
    worker: {replicas: 2}
  training:
    model: {type: mlp, hidden: [8], classes: 2}
    data: {format: csv, train: {inputs: train.csv}}
    optimizer: {type: SGD, learningRate: 0.1}
    globalBatchSize: 8
    steps: 10
)";

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
    auto started = Coordinators::start(std::move(options), cluster_, clock_, Logger::none(), {});
    ASSERT_TRUE(started.ok()) << started.status();
    coordinators_ = *std::move(started);
  }
  static StoredJob stored(std::string uid) {
    api::Parsed parsed = api::parse_training_job(kText, "test");
    EXPECT_TRUE(parsed.job) << api::render_diagnostics(parsed.diagnostics, kText);
    return {.job = *parsed.job, .uid = std::move(uid)};
  }
  std::string token() { return coordinators_->pod_environment("default/fashion")["PACELINE_TOKEN"]; }

  testing::FakeClock clock_;
  TokenCluster cluster_{clock_};
  std::unique_ptr<Coordinators> coordinators_;
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

TEST_F(CoordinatorsTest, WhatIsOverHasNone) {
  StoredJob deleted = stored("u1"), finished = stored("u2");
  deleted.deleted = true;
  finished.job.status.phase = api::Phase::kSucceeded;
  EXPECT_TRUE(coordinators_->job_seen("default/fashion", deleted).ok());
  EXPECT_TRUE(coordinators_->job_seen("default/fashion", finished).ok());
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
  EXPECT_EQ(attempt(), 1) << "they have";
  pod.spec.attempt = 1;
  begin_next();
  EXPECT_EQ(attempt(), 2) << "nobody was told to stop: what failed has said all";
  pod.spec.attempt = 2;
  coordinators_->stop("default/fashion", {"the job is resized", true});
  pod.phase = cluster::PodPhase::kFailed;
  begin_next();
  EXPECT_EQ(attempt(), 3) << "whose pods have ended say nothing more";
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
