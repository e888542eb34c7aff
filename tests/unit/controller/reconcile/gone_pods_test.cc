// Pods that are another job's, that are gone, or that have not gone yet.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST_F(ReconcilerTest, DeletedPodIsToldAndReplacedOnceItsMemberIsMissed) {
  replace_workers();
  bring_up();
  pass();
  EXPECT_THAT(*reports_.gone_.lock(), SizeIs(0));
  plan::ReportedMember member;
  member.role = Role::kWorker;
  member.pod = "fashion-worker-0-0";
  (*reports_.report_.lock())->members.push_back(member);
  ASSERT_TRUE(cluster_.delete_pod("default", "fashion-worker-0-0", "", 1s).ok());
  pass();
  EXPECT_THAT(*reports_.gone_.lock(), ElementsAre("fashion-worker-0-0"));
  EXPECT_EQ(status().phase, api::Phase::kRunning);
  (*reports_.report_.lock())
      ->lost.push_back({.fault = {.role = Role::kWorker, .index = 0, .pod = "fashion-worker-0-0"}});
  pass();
  EXPECT_EQ(status().phase, api::Phase::kRunning);
  EXPECT_EQ(status().restarts.total, 1);
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-0", "fashion-worker-0-1"));
}

TEST_F(ReconcilerTest, AMemberIsDeletedThoughItsCoordinatorMissesItFirst) {
  replace_workers(0);
  bring_up();
  ASSERT_TRUE(cluster_.delete_pod("default", "fashion-worker-0-0", "", 0s).ok());
  (*reports_.report_.lock())->fault = api::Fault{.role = Role::kWorker, .index = 0};
  pass();
  EXPECT_EQ(status().phase, api::Phase::kRestarting) << status().message;
  EXPECT_THAT(status().restarts.by_cause,
              ElementsAre(api::RestartCount{Role::kWorker, api::RestartCause::kDeleted, 1}));
}

TEST_F(ReconcilerTest, LaterAttemptWaitsForTheEndOfTheEarlier) {
  replace_workers();
  bring_up();
  cluster_.end_deleted_at_once(false);
  (*reports_.report_.lock())->fault =
      api::Fault{.kind = api::FaultKind::kKilled, .role = Role::kWorker, .index = 0, .signal = 9};
  pass();
  ASSERT_EQ(status().restarts.attempt, 1);
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-0", "fashion-worker-0-0")) << "they have not ended";
  cluster_.end_deleted();
  pass();
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-1", "fashion-worker-0-1"));
}

}  // namespace
}  // namespace paceline::reconcile
