// A leader that has just begun, with its own coordinators.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "controller/plan/rules.h"
#include "controller/reconcile/coordinators.h"
#include "controller/reconcile/reconciler.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/small_job.h"

namespace paceline::reconcile {
namespace {

constexpr char kKey[] = "default/fashion";
constexpr char kReplicas[] = R"(  strategy: {type: ParameterServer, synchronization: Asynchronous}
  replicaSpecs:
    worker: {replicas: 3, restartPolicy: OnFailure}
    ps: {replicas: 1, restartPolicy: OnFailure}
)";

class TakeoverTest : public ::testing::Test {
 protected:
  TakeoverTest() {
    limits_.worker_program = {"worker"};
    limits_.cores = 8;
  }
  void add(api::TrainingJob job) { ASSERT_TRUE(jobs_.add({.job = std::move(job), .uid = "job-uid"}).ok()); }
  static api::TrainingJob job() { return small_job("fashion", kReplicas); }
  // Another leader, which knows nothing yet.
  void lead() {
    reconciler_.reset();
    CoordinatorsOptions options;
    auto started =
        Coordinators::start(std::move(options), cluster_, clock_, Logger::none(), [](const std::string&) {});
    ASSERT_TRUE(started.ok()) << started.status();
    coordinators_ = *std::move(started);
    reconciler_.emplace(cluster_, jobs_, *coordinators_, clock_, queue_, limits_, Logger::none());
  }
  void pass() {
    const auto made = reconciler_->reconcile_once(kKey);
    EXPECT_TRUE(made.ok()) << made.status();
  }
  // A coordinator that is told of it looks at the time.
  static cluster::Pod nobodys_pod(const std::string& uid) {
    cluster::Pod pod;
    pod.uid = uid;
    pod.spec.index = 9;
    pod.phase = cluster::PodPhase::kFailed;
    return pod;
  }
  // The job runs, and its status says so: each member trains, but for those whose phase is given.
  void bring_up(const std::map<std::string, std::string>& phases = {}, Step step = 0) {
    lead();
    ASSERT_TRUE(jobs_.write_status(kKey, {}).ok());
    pass();
    pass();
    const std::vector<cluster::Pod> pods = *cluster_.list_pods("default", "fashion");
    ASSERT_EQ(pods.size(), 4u);
    api::Status status = stored().job.status;
    ASSERT_EQ(status.phase, api::Phase::kStarting);
    status.phase = api::Phase::kRunning;
    status.restarts.size = 4;
    status.members.clear();
    for (const cluster::Pod& pod : pods) {
      cluster_.run(pod.spec.name);
      const auto given = phases.find(pod.spec.name);
      status.members.push_back({.role = pod.spec.role,
                                .index = pod.spec.index,
                                .pod = pod.spec.name,
                                .phase = given == phases.end() ? "training" : given->second,
                                .step = step});
    }
    ASSERT_TRUE(jobs_.write_status(kKey, status).ok());
  }
  // Ten seconds go by, with a pass in each.
  void pass_for_a_while() {
    for (int i = 0; i < 10; ++i) {
      pass();
      clock_.advance(std::chrono::seconds(1));
      coordinators_->pods_seen(kKey, {nobodys_pod(str_cat(i))});
    }
  }
  StoredJob stored() { return jobs_.get(kKey).value(); }

  FakeClock clock_;
  FakeCluster cluster_{clock_};
  MemoryJobStore jobs_;
  queue::WorkQueue queue_{clock_};
  plan::Limits limits_;
  std::unique_ptr<Coordinators> coordinators_;
  std::optional<Reconciler> reconciler_;
};

// The leader before has written that the others go on without worker 2, or that its work is done.
TEST_F(TakeoverTest, WhoWasLostOrHadFinishedBeforeIsMissedByNobody) {
  add(job());
  for (const std::string& phase : {std::string(plan::kLostPhase), std::string(plan::kFinishedPhase)}) {
    SCOPED_TRACE(phase);
    bring_up({{"fashion-worker-2-0", phase}});
    ASSERT_TRUE(cluster_.delete_pod("default", "fashion-worker-2-0", "", {}).ok());

    lead();
    pass_for_a_while();
    ASSERT_EQ(stored().job.status.phase, api::Phase::kRunning) << stored().job.status.message;
    EXPECT_EQ(stored().job.status.restarts.attempt, 0) << stored().job.status.message;
    EXPECT_FALSE(coordinators_->report(kKey)->fault);
    EXPECT_EQ(cluster_.list_pods("default", "fashion")->size(), 3u);
  }
}

// Rank 0 has written the model and said so, and its pod was deleted before it had ended: only a coordinator
// tells servers that training is over, which end by themselves then.
TEST_F(TakeoverTest, WhereRankZeroHadFinishedAndItsPodIsGoneTheServersAreTold) {
  add(job());
  bring_up({{"fashion-worker-0-0", plan::kFinishedPhase}});
  ASSERT_TRUE(cluster_.delete_pod("default", "fashion-worker-0-0", "", {}).ok());
  lead();
  pass();
  EXPECT_EQ(cluster_.list_pods("default", "fashion")->size(), 3u) << "they have time to hear of it";
  clock_.advance(limits_.finish_grace / 2);
  pass();
  EXPECT_EQ(cluster_.list_pods("default", "fashion")->size(), 3u);
  clock_.advance(std::chrono::seconds(1));
  coordinators_->pods_seen(kKey, {nobodys_pod("look")});
  ASSERT_TRUE(coordinators_->report(kKey));
  EXPECT_EQ(coordinators_->report(kKey)->state, plan::JobState::kFinished);
  EXPECT_FALSE(coordinators_->report(kKey)->fault);
  for (const char* name : {"fashion-ps-0-0", "fashion-worker-1-0", "fashion-worker-2-0"})
    cluster_.finish(name, 0);
  pass();
  EXPECT_EQ(stored().job.status.phase, api::Phase::kSucceeded) << stored().job.status.message;
}

// The members had lost it, found no coordinator that they could tell, and ended. The new one hears of their
// ends first.
TEST_F(TakeoverTest, AServerThatWasDeletedIsTheReasonWhyTheOthersHaveEnded) {
  add(job());
  bring_up({}, 2707);
  for (const int index : {0, 1, 2}) cluster_.finish(str_cat("fashion-worker-", index, "-0"), 1);
  ASSERT_TRUE(cluster_.delete_pod("default", "fashion-ps-0-0", "", {}).ok());
  lead();
  pass_for_a_while();
  const api::Status now = stored().job.status;
  EXPECT_EQ(now.restarts.by_cause,
            (std::vector<api::RestartCount>{{Role::kServer, api::RestartCause::kDeleted, 1}}))
      << now.message;
}

}  // namespace
}  // namespace paceline::reconcile
