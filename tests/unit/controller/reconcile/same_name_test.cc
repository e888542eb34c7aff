// A job is deleted and another one of its name created, and nobody has looked between.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class OneNameStore final : public JobStore {
 public:
  absl::StatusOr<StoredJob> get(const std::string&) override { return truth; }
  absl::Status write_status(const std::string&, const api::Status& status, const std::string&) override {
    truth.job.status = status;
    return absl::OkStatus();
  }
  absl::Status remove(const std::string&, const std::string& uid) override {
    return uid == truth.uid ? absl::OkStatus() : absl::NotFoundError("another uid");
  }
  StoredJob truth;
};

class SameNameTest : public ::testing::Test {
 protected:
  SameNameTest() {
    jobs_.truth = job_of("first");
    lead();
  }
  // A controller that knows nothing yet.
  void lead() {
    reconciler_.reset();
    reconciler_.emplace(cluster_, jobs_, reports_, clock_, queue_, limits_, Logger::none());
  }
  static StoredJob job_of(const std::string& uid) {
    StoredJob stored = stored_job();
    stored.uid = uid;
    return stored;
  }
  absl::Status try_pass() { return reconciler_->reconcile_once(kKey).status(); }
  void pass() {
    const absl::Status passed = try_pass();
    EXPECT_TRUE(passed.ok()) << passed;
  }
  void bring_up() {
    pass();
    cluster_.run("fashion-chief-0-0");
    reports_.report_.lock()->emplace().state = plan::JobState::kRunning;
    pass();
    ASSERT_EQ(jobs_.truth.job.status.phase, api::Phase::kRunning);
  }
  void make_another() {
    jobs_.truth = job_of("second");
    *reports_.report_.lock() = plan::JobReport{};
  }
  // Whose pods there are.
  std::vector<std::string> owners() {
    const std::vector<cluster::Pod> pods = cluster_.list_pods("default", "fashion").value();
    std::vector<std::string> uids;
    for (const cluster::Pod& pod : pods) uids.push_back(pod.spec.job_uid);
    return uids;
  }
  const api::Status& status() { return jobs_.truth.job.status; }

  FakeClock clock_;
  FakeCluster cluster_{clock_};
  OneNameStore jobs_;
  FakeReports reports_;
  queue::WorkQueue queue_{clock_};
  plan::Limits limits_ = small_limits();
  std::optional<Reconciler> reconciler_;
};

TEST_F(SameNameTest, AStopIsCarriedOutOnTheJobThatItWasFor) {
  bring_up();
  reconciler_->stop(kKey);
  make_another();
  pass();
  EXPECT_EQ(cluster_.grace("fashion-chief-0-0"), limits_.stop_grace);
  EXPECT_EQ(*reports_.overs_.lock(), 1) << "its coordinator ends";
  EXPECT_THAT(owners(), ElementsAre("second"));
  EXPECT_EQ(status().phase, api::Phase::kStarting) << status().message;
  EXPECT_EQ(*reports_.stops_.lock(), 1) << "and this one's does not";
}

TEST_F(SameNameTest, PodsThatWereToEndInOrderEndAtOnceWhenTheUserSaysSo) {
  cluster_.end_deleted_at_once(false);
  bring_up();
  reconciler_->stop(kKey);
  pass();
  EXPECT_EQ(cluster_.grace("fashion-chief-0-0"), limits_.stop_grace);
  reconciler_->stop(kKey);
  make_another();
  pass();
  EXPECT_EQ(cluster_.grace("fashion-chief-0-0"), 0s);
  EXPECT_THAT(owners(), ElementsAre("second"));
}

TEST_F(SameNameTest, PodsOfAJobThatNobodyStoppedAreTheClustersToEnd) {
  cluster_.end_deleted_at_once(false);
  bring_up();
  make_another();
  pass();
  EXPECT_THAT(owners(), ElementsAre("first"));
  EXPECT_EQ(*reports_.overs_.lock(), 1);
  ASSERT_TRUE(cluster_.delete_pod("default", "fashion-chief-0-0", "", 0s).ok());
  pass();
  EXPECT_THAT(owners(), ElementsAre("second"));
}

TEST_F(SameNameTest, TheEndOfOneIsNotTheEndOfTheOther) {
  bring_up();
  reconciler_->stop(kKey);
  pass();
  pass();
  EXPECT_EQ(reconciler_->wait(kKey, 0s)->reason, "Stopped");
  make_another();
  pass();
  EXPECT_TRUE(absl::IsDeadlineExceeded(reconciler_->wait(kKey, 0s).status()));
  ASSERT_EQ(reconciler_->snapshots().size(), 1u);
  EXPECT_EQ(reconciler_->snapshots()[0]->job.status.phase, api::Phase::kStarting);
}

// Nothing is to be done for the second, nor to be asked.
TEST_F(SameNameTest, WhatIsNotOursHasNothingOfWhatWas) {
  bring_up();
  reconciler_->stop(kKey);
  pass();
  pass();
  const int overs = *reports_.overs_.lock();
  make_another();
  jobs_.truth.job.spec.run_policy.managed_by = "kueue.x-k8s.io/multikueue";
  pass();
  EXPECT_TRUE(absl::IsDeadlineExceeded(reconciler_->wait(kKey, 0s).status()));
  EXPECT_EQ(*reports_.overs_.lock(), overs + 1);
  EXPECT_EQ(status(), api::Status());
  EXPECT_TRUE(owners().empty());
}

TEST_F(SameNameTest, TheTroubleOfOneIsNotTheOthers) {
  cluster_.refuse_creations(absl::ResourceExhaustedError("quota"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(try_pass().ok());
    queue_.add_rate_limited(kKey);
  }
  EXPECT_EQ(status().reason, "PodNotCreated");
  make_another();
  cluster_.refuse_creations(absl::OkStatus());
  pass();
  EXPECT_NE(status().reason, "PodNotCreated") << status().message;
  EXPECT_EQ(queue_.failures(kKey), 0) << "nor does it wait for what the other did";
}

}  // namespace
}  // namespace paceline::reconcile
