// Lists and jobs that are copies, and may be of an earlier moment.

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

TEST_F(ReconcilerTest, PodsOfAnEarlierJobOfThisNameAreNotCounted) {
  cluster::PodSpec spec;
  spec.name = "fashion-worker-0-7";
  spec.job = "fashion";
  spec.job_uid = "an earlier job's uid";
  spec.attempt = 7;
  spec.command = {"x"};
  ASSERT_TRUE(cluster_.create_pod(spec).ok());
  cluster_.run(spec.name);
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-0", "fashion-worker-0-0", "fashion-worker-0-7"));
  EXPECT_EQ(status().phase, api::Phase::kStarting);
  EXPECT_EQ(status().replica_statuses[1].active, 0);
}

TEST_F(ReconcilerTest, APodThatOnlyTheCopyOfTheListMissesIsNotTakenForDeleted) {
  jobs_.edit([](api::TrainingJob& job) {
    job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
  });
  bring_up();
  pass();
  EXPECT_EQ(cluster_.lists_now(), 0) << "what is in the copy needs no second look";
  cluster_.hide("fashion-worker-0-0");
  pass();
  EXPECT_EQ(cluster_.lists_now(), 1);
  EXPECT_THAT(*reports_.gone_.lock(), SizeIs(0));
  EXPECT_EQ(status().phase, api::Phase::kRunning);
  EXPECT_EQ(status().restarts.total, 0);
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-0", "fashion-worker-0-0"));
  ASSERT_TRUE(cluster_.delete_pod("default", "fashion-worker-0-0", "", 1s).ok());
  pass();
  EXPECT_EQ(cluster_.lists_now(), 2);
  EXPECT_THAT(*reports_.gone_.lock(), ElementsAre("fashion-worker-0-0")) << "the coordinator is told";
  EXPECT_EQ(status().phase, api::Phase::kRestarting) << "the cluster itself says so";
  EXPECT_EQ(status().restarts.total, 1);
}

TEST_F(ReconcilerTest, AMemberIsDeletedThoughItsCoordinatorMissesItFirst) {
  jobs_.edit([](api::TrainingJob& job) {
    job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
    job.spec.run_policy.backoff_limit = 0;
  });
  bring_up();
  ASSERT_TRUE(cluster_.delete_pod("default", "fashion-worker-0-0", "", 0s).ok());
  (*reports_.report_.lock())->fault = api::Fault{.role = Role::kWorker, .index = 0};
  pass();
  EXPECT_EQ(cluster_.lists_now(), 1);
  EXPECT_EQ(status().phase, api::Phase::kRestarting) << status().message;
  EXPECT_THAT(status().restarts.by_cause,
              ElementsAre(api::RestartCount{Role::kWorker, api::RestartCause::kDeleted, 1}));
}

TEST_F(ReconcilerTest, ALaterAttemptWaitsForThoseThatTheCopyOfTheListDoesNotShow) {
  jobs_.edit([](api::TrainingJob& job) {
    job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
  });
  bring_up();
  cluster_.end_deleted_at_once(false);
  ASSERT_TRUE(cluster_.delete_pod("default", "fashion-worker-0-0", "", 1s).ok());
  pass();
  ASSERT_EQ(status().restarts.attempt, 1);
  for (const std::string& name : pods()) cluster_.hide(name);
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-0", "fashion-worker-0-0")) << "they have not ended";
  cluster_.end_deleted();
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-1", "fashion-worker-0-1"));
  const int asked = cluster_.lists_now();
  for (int i = 0; i < 3; ++i) pass();
  EXPECT_EQ(cluster_.lists_now(), asked);
}

// The watch that brings jobs may be many attempts behind when a leader begins.
TEST_F(ReconcilerTest, AJobIsAskedForBeforeAnythingIsDoneForItOncePerLeader) {
  jobs_.edit([](api::TrainingJob& job) {
    job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
  });
  const absl::StatusOr<StoredJob> old = jobs_.get(kKey);
  for (int attempt = 0; attempt < 2; ++attempt) {
    bring_up();
    ASSERT_TRUE(cluster_.delete_pod("default", str_cat("fashion-worker-0-", attempt), "", 1s).ok());
    pass();
    clock_.advance(1min);  // the back-off
  }
  bring_up();
  const std::vector<std::string> members = pods();
  ASSERT_THAT(members, ElementsAre("fashion-chief-0-2", "fashion-worker-0-2"));
  EXPECT_EQ(*jobs_.asked_.lock(), 1) << "what this leader has written itself it knows";

  reconciler_.emplace(cluster_, jobs_, reports_, clock_, queue_, limits_, Logger::none());
  for (const std::string& name : members) cluster_.hide(name);
  jobs_.show_old(old);
  pass();
  EXPECT_EQ(*jobs_.asked_.lock(), 2);
  EXPECT_EQ(pods(), members);
  EXPECT_EQ(status().restarts.attempt, 2);
  for (int i = 0; i < 3; ++i) pass();
  EXPECT_EQ(*jobs_.asked_.lock(), 2);

  reconciler_.emplace(cluster_, jobs_, reports_, clock_, queue_, limits_, Logger::none());
  pass();
  EXPECT_EQ(*jobs_.asked_.lock(), 3) << "another leader, though it has nothing to do";
}

}  // namespace
}  // namespace paceline::reconcile
