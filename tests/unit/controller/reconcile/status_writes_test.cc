// When a status is written, and when it is not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/rules.h"
#include "controller/reconcile/reconciler.h"
#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST_F(ReconcilerTest, NothingIsDoneOrWrittenTwice) {
  bring_up();
  pass();
  const int writes = *jobs_.writes_.lock();
  for (int i = 0; i < 5; ++i) pass();
  EXPECT_EQ(*jobs_.writes_.lock(), writes);
  EXPECT_EQ(cluster_.creations(), 2);
  EXPECT_THAT(cluster_.events(), SizeIs(2)) << "Starting, Running";
  EXPECT_EQ(*reports_.seen_.lock(), 2u);
}

TEST_F(ReconcilerTest, ProgressIsWrittenOncePerInterval) {
  bring_up();
  clock_.advance(kProgressInterval);
  int writes = *jobs_.writes_.lock();
  set_report(plan::JobState::kRunning, 10);
  pass();
  EXPECT_EQ(*jobs_.writes_.lock(), ++writes);
  set_report(plan::JobState::kRunning, 20);
  const plan::Plan held = pass();
  EXPECT_EQ(*jobs_.writes_.lock(), writes);
  EXPECT_EQ(held.requeue_after, kProgressInterval);
  EXPECT_EQ(status().progress.step, 10);
  {
    auto report = reports_.report_.lock();  // what comes with heartbeats, and with checkpoints
    (*report)->checkpoint_path = "/checkpoints/20";
    (*report)->members.push_back({{.role = Role::kChief, .phase = "Evaluating"}});
  }
  pass();
  EXPECT_EQ(*jobs_.writes_.lock(), writes);
  clock_.advance(kProgressInterval);
  pass();
  EXPECT_EQ(status().progress.step, 20);
  EXPECT_EQ(status().last_checkpoint, "/checkpoints/20");
}

// A controller that finds a part of them deleted, and no word of the end, would miss their members.
TEST_F(ReconcilerTest, TheEndIsWrittenBeforeAnyOfItsPodsIsDeleted) {
  jobs_.edit([](api::TrainingJob& job) { job.spec.run_policy.clean_pod_policy = api::CleanPodPolicy::kAll; });
  bring_up();
  for (const std::string& name : pods()) cluster_.finish(name, 0);
  set_report(plan::JobState::kFinished);
  *jobs_.failure_.lock() = absl::UnavailableError("the API server is away");
  EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  EXPECT_THAT(pods(), SizeIs(2));
  *jobs_.failure_.lock() = absl::OkStatus();
  pass();
  EXPECT_EQ(status().phase, api::Phase::kSucceeded);
  EXPECT_THAT(pods(), SizeIs(0));
}

// However its members come up; where that takes long, people see how far it is.
TEST_F(ReconcilerTest, AStartIsTwoWritesOfItsStatus) {
  pass();
  EXPECT_EQ(*jobs_.writes_.lock(), 1) << "Starting";
  for (const std::string& name : pods()) {
    EXPECT_EQ(pass().requeue_after, kProgressInterval);
    cluster_.run(name);
    pass();
  }
  EXPECT_EQ(*jobs_.writes_.lock(), 1);
  EXPECT_THAT(status().members, SizeIs(0));
  set_report(plan::JobState::kRunning);
  pass();
  EXPECT_EQ(*jobs_.writes_.lock(), 2) << "Running";
  EXPECT_THAT(status().members, SizeIs(2));
}

TEST_F(ReconcilerTest, MembersOfASlowStartAreToldOncePerInterval) {
  pass();
  cluster_.run(pods()[0]);
  pass();
  clock_.advance(kProgressInterval);
  pass();
  EXPECT_EQ(*jobs_.writes_.lock(), 2);
  EXPECT_EQ(status().phase, api::Phase::kStarting);
  ASSERT_THAT(status().members, SizeIs(2));
  EXPECT_EQ(status().members[0].phase, "Running");
  EXPECT_EQ(status().members[1].phase, "Pending");
}

// What another controller must know is no progress: a member's word that its work is done.
TEST_F(ReconcilerTest, WhoHasFinishedIsWrittenAtOnce) {
  bring_up();
  clock_.advance(kProgressInterval);
  set_report(plan::JobState::kRunning, 10);
  pass();
  int writes = *jobs_.writes_.lock();
  const auto say = [&](const char* phase, bool finished) {
    set_report(plan::JobState::kRunning, 20);
    (*reports_.report_.lock())->members.push_back({{.role = Role::kWorker, .phase = phase}, finished});
  };
  say("leaving", false);
  pass();
  EXPECT_EQ(*jobs_.writes_.lock(), writes) << "its own word is progress";
  say("finished", true);
  pass();
  EXPECT_EQ(*jobs_.writes_.lock(), ++writes);
  EXPECT_EQ(status().members.at(1).phase, plan::kFinishedPhase);
  EXPECT_EQ(status().progress.step, 20);
  (*reports_.report_.lock())->progress.step = 30;
  pass();
  EXPECT_EQ(*jobs_.writes_.lock(), writes) << "once";
}

// Somebody changes the job at the moment at which it is written.
TEST_F(ReconcilerTest, WhatIsTakenBackBeforeItIsWrittenHasNotBegun) {
  using Edit = void (*)(api::TrainingJob&);
  for (const Edit edit : {Edit{[](api::TrainingJob& job) { job.spec.run_policy.suspend = true; }},
                          Edit{[](api::TrainingJob& job) { job.spec.replica_specs.worker->replicas = 2; }}}) {
    bring_up();
    const std::size_t events = cluster_.events().size();
    jobs_.edit(edit);
    *jobs_.failure_.lock() = absl::AbortedError("the job has changed");
    EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
    *jobs_.failure_.lock() = absl::OkStatus();
    jobs_.edit([](api::TrainingJob&) {});
    pass();
    EXPECT_EQ(*reports_.stops_.lock(), 0) << "nobody was told to leave";
    const std::vector<cluster::Pod> list = cluster_.list_pods("default", "fashion").value();
    for (const cluster::Pod& pod : list) EXPECT_FALSE(pod.deleting);
    EXPECT_THAT(pods(), SizeIs(2));
    EXPECT_EQ(status().phase, api::Phase::kRunning);
    EXPECT_EQ(status().restarts, (api::Restarts{.size = 2}));
    EXPECT_THAT(cluster_.events(), SizeIs(events));
  }
}

TEST_F(ReconcilerTest, WhatMembersSayAsTheyLeaveIsKeptWhenItIsWritten) {
  bring_up();
  cluster_.end_deleted_at_once(false);
  *reports_.leaving_.lock() = true;
  jobs_.edit([](api::TrainingJob& job) { job.spec.run_policy.suspend = true; });
  pass();
  ASSERT_EQ(status().restarts.attempt, 1);
  jobs_.edit([](api::TrainingJob&) {});
  pass();
  EXPECT_EQ(*reports_.kept_.lock(), -1) << "they are still at it";
  cluster_.end_deleted();
  pass();
  set_report(plan::JobState::kStopped, 7);  // no more than a step: it is not held back
  *jobs_.failure_.lock() = absl::UnavailableError("away");
  EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  EXPECT_EQ(*reports_.kept_.lock(), -1);
  *jobs_.failure_.lock() = absl::OkStatus();
  pass();
  EXPECT_EQ(status().progress.step, 7);
  EXPECT_EQ(*reports_.kept_.lock(), 0);
  EXPECT_THAT(pods(), SizeIs(0)) << "nobody comes before the coordinator that it belongs to";
  *reports_.leaving_.lock() = false;
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-1", "fashion-worker-0-1"));
}

TEST_F(ReconcilerTest, AStatusThatCannotBeWrittenStillEndsTheWait) {
  bring_up();
  *jobs_.failure_.lock() = absl::ResourceExhaustedError("the disk is full");
  reconciler_->stop(kKey);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  const auto final_status = reconciler_->wait(kKey, 0s);
  ASSERT_TRUE(final_status.ok()) << final_status.status();
  EXPECT_EQ(final_status->reason, "Stopped");
}

}  // namespace
}  // namespace paceline::reconcile
