// Making what a job needs: its pods all at once, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/reconcile/reconciler.h"
#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr Duration kPatience = 20s;

TEST_F(ReconcilerTest, AnExistingPodIsNoError) {
  cluster::PodSpec spec;
  spec.name = "fashion-chief-0-0";
  spec.job = "another list does not show it";
  spec.command = {"x"};
  ASSERT_TRUE(cluster_.create_pod(spec).ok());
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-worker-0-0"));
}

// A cluster in which the second pod is not made before somebody asks for the third.
class PatientCluster final : public OtherCluster {
 public:
  using OtherCluster::OtherCluster;
  absl::StatusOr<cluster::Pod> create_pod(const cluster::PodSpec& spec) override {
    const int number = ++*asked_.lock();
    bool met = true;
    if (number == 2) asked_.lock_when([](int asked) { return asked >= 3; }, kPatience, &met);
    if (!met) return absl::DeadlineExceededError("nobody asks for a pod while another one is made");
    return OtherCluster::create_pod(spec);
  }

 private:
  Guarded<int> asked_{0};
};

TEST_F(ReconcilerTest, PodsAreMadeAtTheSameTime) {
  jobs_.edit([](api::TrainingJob& job) { job.spec.replica_specs.worker->replicas = 3; });
  PatientCluster cluster(cluster_);
  queue::WorkQueue queue(clock_);  // the fixture's ends with its reconciler
  reconciler_.emplace(cluster, jobs_, reports_, clock_, queue, limits_, Logger::none(),
                      ReconcilerOptions{.create_threads = 2});
  const auto made = reconciler_->reconcile_once(kKey);
  EXPECT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(pods(), SizeIs(4));
  reconciler_.reset();
}

TEST_F(ReconcilerTest, RefusedCreationsEndTheJob) {
  cluster_.refuse_creations(absl::ResourceExhaustedError("the disk is full"));
  for (int i = 0; i < limits_.create_failures; ++i) {
    EXPECT_EQ(reconciler_->reconcile_once(kKey).status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_TRUE(pass().done);
  EXPECT_EQ(status().phase, api::Phase::kFailed);
  EXPECT_THAT(status().message, HasSubstr("the disk is full"));
}

TEST_F(ReconcilerTest, ARefusedCreationShowsInTheStatus) {
  cluster_.refuse_creations(absl::ResourceExhaustedError("exceeded quota: compute"));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  EXPECT_EQ(status().reason, "PodNotCreated");
  EXPECT_THAT(status().message, HasSubstr("exceeded quota: compute"));
}

TEST_F(ReconcilerTest, WhatMustComeBeforeThePodsShowsInTheStatus) {
  *reports_.job_seen_.lock() = absl::ResourceExhaustedError("exceeded quota: secrets");
  reports_.report_.lock()->reset();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(reconciler_->reconcile_once(kKey).status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(status().phase, api::Phase::kStarting);
  EXPECT_EQ(status().reason, "PodNotCreated");
  EXPECT_EQ(status().message, "pod fashion-* could not be created: exceeded quota: secrets");
  EXPECT_THAT(pods(), SizeIs(0));
  *reports_.job_seen_.lock() = absl::OkStatus();
  set_report(plan::JobState::kForming);
  pass();
  EXPECT_THAT(pods(), SizeIs(2));
  pass();
  EXPECT_NE(status().reason, "PodNotCreated");
}

TEST_F(ReconcilerTest, PodsThatDoNotStartAreLookedAtAgain) {
  reconciler_.reset();
  reconciler_.emplace(cluster_, jobs_, reports_, clock_, queue_, limits_, Logger::none(),
                      ReconcilerOptions{.pending_look = 400ms});
  pass();
  EXPECT_EQ(pass().requeue_after, 400ms);
  bring_up();
  EXPECT_NE(pass().requeue_after, 400ms);
}

TEST_F(ReconcilerTest, RefusedCreationsMayRecover) {
  cluster_.refuse_creations(absl::UnavailableError("away"));
  EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  cluster_.refuse_creations(absl::OkStatus());
  pass();
  EXPECT_THAT(pods(), SizeIs(2));
}

TEST_F(ReconcilerTest, InANamespaceThatIsBeingDeletedNothingIsTriedAgain) {
  Guarded<std::vector<std::string>> passes;
  ReconcilerOptions options;
  options.on_pass = [&](std::string_view result, Duration) { passes.lock()->emplace_back(result); };
  queue::WorkQueue queue(clock_);  // the fixture's ends with its reconciler
  ::testing::internal::CaptureStderr();
  reconciler_.emplace(cluster_, jobs_, reports_, clock_, queue, limits_,
                      Logger::to_stderr("test", LogLevel::kInfo), options);
  cluster_.refuse_creations(absl::CancelledError("namespace default is being terminated"));
  reconciler_->start();
  for (std::size_t count : {1u, 2u}) {
    reconciler_->notify(kKey);
    bool passed = false;
    passes.lock_when([&](const auto& results) { return results.size() >= count; }, kPatience, &passed);
    EXPECT_TRUE(passed);
  }
  reconciler_.reset();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(*passes.lock(), ::testing::Each("success"));
  EXPECT_THAT(log, ::testing::Not(HasSubstr("it is tried again")));
  const std::size_t said = log.find("its namespace is being deleted");
  EXPECT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("its namespace is being deleted", said + 1), std::string::npos) << "once is enough";
}

}  // namespace
}  // namespace paceline::reconcile
