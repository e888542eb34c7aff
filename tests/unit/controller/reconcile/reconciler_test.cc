#include "controller/reconcile/reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr Duration kPatience = 20s;

TEST_F(ReconcilerTest, APassCreatesThePodsAndWritesTheStatus) {
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-0", "fashion-worker-0-0"));
  EXPECT_EQ(status().phase, api::Phase::kStarting);
  EXPECT_THAT(cluster_.events(), SizeIs(1));
  const auto list = *cluster_.list_pods("default", "fashion");
  EXPECT_EQ(list[0].spec.env.at("PACELINE_COORDINATOR"), "127.0.0.1:1");
  EXPECT_EQ(list[0].spec.job_uid, "job-uid");
}

TEST_F(ReconcilerTest, WhatAJobHasOnceComesBeforeItsPodsAndIsLookedAfter) {
  cluster_.refuse_objects(absl::FailedPreconditionError("service default/fashion exists"));
  EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  EXPECT_THAT(pods(), SizeIs(0)) << "no pod before its Service and Secret";
  cluster_.refuse_objects(absl::OkStatus());
  pass();
  EXPECT_THAT(pods(), SizeIs(2));
  ASSERT_FALSE(cluster_.ensured().empty());
  EXPECT_EQ(cluster_.ensured().back().job, "fashion");
  EXPECT_EQ(cluster_.ensured().back().job_uid, "job-uid");
  bring_up();
  const std::size_t before = cluster_.ensured().size();
  pass();
  EXPECT_GT(cluster_.ensured().size(), before) << "what somebody deleted comes back";
}

TEST_F(ReconcilerTest, PodsGetTheirRolesTemplate) {
  StoredJob stored = stored_job("templated", 1);
  stored.pod_templates[Role::kWorker] = R"({"spec": {}})";
  ASSERT_TRUE(jobs_.store_.add(stored).ok());
  ASSERT_TRUE(reconciler_->reconcile_once("default/templated").ok());
  const auto list = *cluster_.list_pods("default", "templated");
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_EQ(list[0].spec.pod_template, "");
  EXPECT_EQ(list[1].spec.pod_template, R"({"spec": {}})");
}

TEST_F(ReconcilerTest, MembersThatAreThereAreNotJudgedWithoutTheirCoordinator) {
  bring_up();
  const api::Status before = status();
  *reports_.job_seen_.lock() = absl::UnavailableError("the API server is away");
  reports_.report_.lock()->reset();
  cluster_.finish("fashion-chief-0-0", 0);
  EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  EXPECT_EQ(status(), before);
}

TEST_F(ReconcilerTest, RefusedJobWithMembersSaysSoOnceAndGoesOnLater) {
  bring_up();
  const auto told = [&] {
    const auto events = cluster_.events();
    return std::ranges::count(events, std::string(api::kInvalidSpec), &cluster::Event::reason);
  };
  *reports_.job_seen_.lock() = absl::FailedPreconditionError("coordinator.tls is off");
  reports_.report_.lock()->reset();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  EXPECT_EQ(status().phase, api::Phase::kRunning);
  EXPECT_THAT(pods(), SizeIs(2));
  const auto said = [&] {
    const api::Status now = status();
    const auto found = std::ranges::find(now.conditions, api::kInvalidSpec, &api::Condition::type);
    return found == now.conditions.end() ? api::Condition{} : *found;
  };
  EXPECT_TRUE(said().status);
  EXPECT_EQ(said().reason, "Refused");
  EXPECT_EQ(said().message, "coordinator.tls is off");
  EXPECT_EQ(told(), 1);
  *reports_.job_seen_.lock() = absl::OkStatus();
  set_report(plan::JobState::kRunning, 7);
  pass();
  EXPECT_EQ(said().reason, "Mended");
  EXPECT_FALSE(said().status);
  EXPECT_EQ(status().progress.step, 7);
}

TEST_F(ReconcilerTest, PodsOfEarlierAttemptsHideNotWhyTheNextDoesNotBegin) {
  jobs_.edit([](api::TrainingJob& job) {
    job.spec.replica_specs.chief->restart_policy = api::RestartPolicy::kOnFailure;
  });
  bring_up();
  cluster_.finish("fashion-worker-0-0", 0);
  cluster_.finish("fashion-chief-0-0", 1);
  set_report(plan::JobState::kFailed);
  pass();
  ASSERT_EQ(status().restarts.attempt, 1);
  *reports_.job_seen_.lock() = absl::FailedPreconditionError("secret default/fashion-token is somebody's");
  reports_.report_.lock()->reset();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-0", "fashion-worker-0-0")) << "kept for their logs";
  EXPECT_EQ(status().reason, "PodNotCreated");
  EXPECT_THAT(status().message, HasSubstr("secret default/fashion-token is somebody's"));
}

TEST_F(ReconcilerTest, ASuspendedJobsCoordinatorIsToldOnceAndItsPodsEnd) {
  bring_up();
  jobs_.edit([](api::TrainingJob& job) { job.spec.run_policy.suspend = true; });
  for (int i = 0; i < 3; ++i) pass();
  EXPECT_EQ(*reports_.stops_.lock(), 1);
  EXPECT_THAT(pods(), SizeIs(0));
  EXPECT_EQ(status().phase, api::Phase::kSuspended);
  jobs_.edit([](api::TrainingJob& job) { job.spec.run_policy.suspend = false; });
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-1", "fashion-worker-0-1"));
  EXPECT_EQ(*reports_.attempt_.lock(), 1);
}

TEST_F(ReconcilerTest, AResizedJobsMembersAreToldAndWhatTheySaveIsKept) {
  jobs_.edit([](api::TrainingJob& job) { job.spec.replica_specs.worker->max_replicas = 2; });
  bring_up();
  cluster_.end_deleted_at_once(false);
  *reports_.leaving_.lock() = true;
  jobs_.edit([](api::TrainingJob& job) { job.spec.replica_specs.worker->replicas = 2; });
  pass();
  EXPECT_EQ(*reports_.stops_.lock(), 1) << "a member that was stopped has not failed";
  EXPECT_EQ(status().reason, "Resized");
  EXPECT_EQ(status().restarts.attempt, 1);
  (*reports_.report_.lock())->checkpoint_path =
      "/checkpoints/step-000000007";  // the last one's, as it leaves
  pass();
  EXPECT_EQ(status().last_checkpoint, "/checkpoints/step-000000007");
  EXPECT_EQ(*reports_.stops_.lock(), 1);
}

TEST_F(ReconcilerTest, AJobThatHasLainLongEnoughIsDeleted) {
  jobs_.edit([](api::TrainingJob& job) { job.spec.run_policy.ttl_seconds_after_finished = 5; });
  bring_up();
  set_report(plan::JobState::kFinished);
  for (const std::string& name : pods()) cluster_.finish(name, 0);
  pass();
  EXPECT_FALSE(jobs_.get(kKey)->deleted);
  clock_.advance(5s);
  pass();
  EXPECT_TRUE(jobs_.get(kKey)->deleted);
}

TEST_F(ReconcilerTest, StopInOrderThenAtOnce) {
  bring_up();
  cluster_.end_deleted_at_once(false);
  reconciler_->stop(kKey);
  pass();
  EXPECT_EQ(*reports_.stops_.lock(), 1);
  EXPECT_EQ(cluster_.grace("fashion-chief-0-0"), limits_.stop_grace);
  EXPECT_EQ(reconciler_->wait(kKey, 0s).status().code(), absl::StatusCode::kDeadlineExceeded);
  reconciler_->stop(kKey);
  EXPECT_EQ(*reports_.stops_.lock(), 1);
  pass();
  EXPECT_EQ(cluster_.grace("fashion-chief-0-0"), 0s);
  EXPECT_TRUE(pass().done);
  EXPECT_EQ(reconciler_->wait(kKey, 0s)->reason, "Stopped");
}

TEST_F(ReconcilerTest, AJobThatIsUnknownIsAnError) {
  EXPECT_EQ(reconciler_->reconcile_once("default/nobody").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ReconcilerTest, WhatAPodMissesIsNotAMissingJob) {
  cluster_.refuse_creations(absl::NotFoundError("spawn worker: No such file or directory"));
  for (int i = 0; i < limits_.create_failures; ++i) {
    EXPECT_EQ(reconciler_->reconcile_once(kKey).status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_TRUE(pass().done);
  EXPECT_THAT(status().message, HasSubstr("spawn worker: No such file or directory"));
}

// ---- with its thread

TEST_F(ReconcilerTest, TheLoopFollowsTheClusterAndTheCoordinator) {
  reports_.report_.lock()->reset();
  reconciler_->start();
  reconciler_->notify(kKey);
  // No coordinator: pods alone make the job run and succeed. The watch is the only thing that wakes the loop.
  while (pods().size() < 2) std::this_thread::yield();
  for (const std::string& name : pods()) cluster_.run(name);
  for (const std::string& name : pods()) cluster_.finish(name, 0);
  const auto final_status = reconciler_->wait(kKey, kPatience);
  ASSERT_TRUE(final_status.ok()) << final_status.status();
  EXPECT_EQ(final_status->phase, api::Phase::kSucceeded);
  EXPECT_EQ(status(), *final_status);
}

TEST_F(ReconcilerTest, TheLoopStops) {
  reconciler_->start();
  reconciler_->notify(kKey);
  while (pods().size() < 2) std::this_thread::yield();
  reconciler_->stop(kKey);
  const auto final_status = reconciler_->wait(kKey, kPatience);
  ASSERT_TRUE(final_status.ok()) << final_status.status();
  EXPECT_EQ(final_status->phase, api::Phase::kFailed);
  EXPECT_THAT(pods(), SizeIs(0));
}

TEST_F(ReconcilerTest, EveryLineAboutAJobNamesItAndTheReason) {
  queue::WorkQueue queue(clock_);  // the fixture's ends with its reconciler
  ::testing::internal::CaptureStderr();
  reconciler_.emplace(cluster_, jobs_, reports_, clock_, queue, limits_,
                      Logger::to_stderr("test", LogLevel::kDebug, LogFormat::kJson), ReconcilerOptions());
  jobs_.edit([](api::TrainingJob& job) {
    job.spec.run_policy.ttl_seconds_after_finished = 5;
    job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kAll;
  });
  bring_up();
  set_report(plan::JobState::kFinished);
  for (const std::string& name : pods()) cluster_.finish(name, 0);
  pass();
  clock_.advance(5s);
  pass();
  EXPECT_TRUE(jobs_.get(kKey)->deleted);
  std::istringstream log(::testing::internal::GetCapturedStderr());
  int lines = 0;
  for (std::string line; std::getline(log, line); ++lines) {
    EXPECT_THAT(line, HasSubstr("\"job\":\"default/fashion\""));
    EXPECT_THAT(line, ::testing::ContainsRegex("\"reason\":\"[^\"]"));
  }
  EXPECT_GE(lines, 8) << "pods made and deleted, three events, the job's end";
  reconciler_.reset();  // before its queue
}

TEST_F(ReconcilerTest, WithoutItsLoopNothingIsWaitedForBeyondTheTimeout) {
  EXPECT_EQ(reconciler_->wait(kKey, 1ms).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(MemoryJobStoreTest, KeepsJobs) {
  MemoryJobStore store;
  StoredJob job;
  job.job.metadata.name = "a";
  ASSERT_TRUE(store.add(job).ok());
  EXPECT_EQ(store.add(job).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(store.get("default/b").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store.write_status("default/b", {}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store.remove("default/b", "").code(), absl::StatusCode::kNotFound);
  api::Status status;
  status.reason = "Because";
  ASSERT_TRUE(store.write_status("default/a", status).ok());
  EXPECT_EQ(store.remove("default/a", "another uid").code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(store.get("default/a")->deleted);
  ASSERT_TRUE(store.remove("default/a", "").ok());
  EXPECT_EQ(store.get("default/a")->job.status.reason, "Because");
  EXPECT_TRUE(store.get("default/a")->deleted);
}

}  // namespace
}  // namespace paceline::reconcile
