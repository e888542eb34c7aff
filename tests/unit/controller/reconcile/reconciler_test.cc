#include "controller/reconcile/reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <sstream>

#include "base/check.h"
#include "base/status.h"
#include "controller/plan/rules.h"
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
  StoredJob stored;
  stored.uid = "job-uid";
  stored.job.metadata.name = "templated";
  stored.job.spec.training.emplace();
  stored.job.spec.replica_specs.chief = api::ReplicaSpec{1, {}, {}};
  stored.job.spec.replica_specs.worker = api::ReplicaSpec{1, {}, {}};
  stored.pod_templates[Role::kWorker] = R"({"spec": {}})";
  ASSERT_TRUE(jobs_.store_.add(stored).ok());
  ASSERT_TRUE(reconciler_->reconcile_once("default/templated").ok());
  const auto list = *cluster_.list_pods("default", "templated");
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_EQ(list[0].spec.pod_template, "");
  EXPECT_EQ(list[1].spec.pod_template, R"({"spec": {}})");
}

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
  set_report(plan::ReportPhase::kRunning, 10);
  pass();
  EXPECT_EQ(*jobs_.writes_.lock(), ++writes);
  set_report(plan::ReportPhase::kRunning, 20);
  const plan::Plan held = pass();
  EXPECT_EQ(*jobs_.writes_.lock(), writes);
  EXPECT_EQ(held.requeue_after, kProgressInterval);
  EXPECT_EQ(status().progress.step, 10);
  {
    auto report = reports_.report_.lock();  // what comes with heartbeats, and with checkpoints
    (*report)->checkpoint_path = "/checkpoints/20";
    (*report)->members.push_back({.id = MemberId{"m"}, .role = Role::kChief, .phase = "Evaluating"});
  }
  pass();
  EXPECT_EQ(*jobs_.writes_.lock(), writes);
  clock_.advance(kProgressInterval);
  pass();
  EXPECT_EQ(status().progress.step, 20);
  EXPECT_EQ(status().last_checkpoint, "/checkpoints/20");
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
  set_report(plan::ReportPhase::kRunning);
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
  set_report(plan::ReportPhase::kRunning, 10);
  pass();
  int writes = *jobs_.writes_.lock();
  const auto say = [&](const char* phase, bool finished) {
    set_report(plan::ReportPhase::kRunning, 20);
    (*reports_.report_.lock())
        ->members.push_back(
            {.id = MemberId{"m"}, .role = Role::kWorker, .phase = phase, .finished = finished});
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
class PatientCluster final : public cluster::Cluster {
 public:
  explicit PatientCluster(testing::FakeCluster& cluster) : cluster_(cluster) {}
  absl::StatusOr<cluster::Pod> create_pod(const cluster::PodSpec& spec) override {
    const int number = ++*asked_.lock();
    bool met = true;
    if (number == 2) asked_.lock_when([](int asked) { return asked >= 3; }, kPatience, &met);
    if (!met) return absl::DeadlineExceededError("nobody asks for a pod while another one is made");
    return cluster_.create_pod(spec);
  }
  absl::Status delete_pod(const std::string& ns, const std::string& name, const std::string& uid,
                          Duration grace) override {
    return cluster_.delete_pod(ns, name, uid, grace);
  }
  absl::StatusOr<std::vector<cluster::Pod>> list_pods(const std::string& ns,
                                                      const std::string& job) override {
    return cluster_.list_pods(ns, job);
  }
  absl::StatusOr<std::vector<cluster::Pod>> list_pods_now(const std::string& ns, const std::string& job,
                                                          const std::vector<std::string>& names) override {
    return cluster_.list_pods_now(ns, job, names);
  }
  absl::StatusOr<std::string> ensure_job(const cluster::JobObjects& job) override {
    return cluster_.ensure_job(job);
  }
  absl::Status record_event(const cluster::Event& event) override { return cluster_.record_event(event); }
  void watch(OnChange on_change) override { cluster_.watch(std::move(on_change)); }
  absl::StatusOr<std::string> tail_log(const cluster::Pod& pod, int lines) override {
    return cluster_.tail_log(pod, lines);
  }

 private:
  testing::FakeCluster& cluster_;
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
  set_report(plan::ReportPhase::kForming);
  pass();
  EXPECT_THAT(pods(), SizeIs(2));
  pass();
  EXPECT_NE(status().reason, "PodNotCreated");
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

TEST_F(ReconcilerTest, PodsOfEarlierAttemptsHideNotWhyTheNextDoesNotBegin) {
  jobs_.edit([](api::TrainingJob& job) {
    job.spec.replica_specs.chief->restart_policy = api::RestartPolicy::kOnFailure;
  });
  bring_up();
  cluster_.finish("fashion-worker-0-0", 0);
  cluster_.finish("fashion-chief-0-0", 1);
  set_report(plan::ReportPhase::kFailed);
  pass();
  ASSERT_EQ(status().restarts.attempt, 1);
  *reports_.job_seen_.lock() = absl::FailedPreconditionError("secret default/fashion-token is somebody's");
  reports_.report_.lock()->reset();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  EXPECT_THAT(pods(), ElementsAre("fashion-chief-0-0", "fashion-worker-0-0")) << "kept for their logs";
  EXPECT_EQ(status().reason, "PodNotCreated");
  EXPECT_THAT(status().message, HasSubstr("secret default/fashion-token is somebody's"));
}

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
  (*reports_.report_.lock())->culprit =
      plan::Culprit{.role = Role::kWorker, .index = 0, .kind = plan::CulpritKind::kDead};
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

TEST_F(ReconcilerTest, PodsThatDoNotStartAreLookedAtAgain) {
  reconciler_.reset();
  reconciler_.emplace(cluster_, jobs_, reports_, clock_, queue_, limits_, Logger::none(),
                      ReconcilerOptions{.pending_look = 400ms});
  pass();
  EXPECT_EQ(pass().requeue_after, 400ms);
  bring_up();
  EXPECT_NE(pass().requeue_after, 400ms);
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
  set_report(plan::ReportPhase::kStopped, 7);  // no more than a step: it is not held back
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
  set_report(plan::ReportPhase::kFinished);
  for (const std::string& name : pods()) cluster_.finish(name, 0);
  pass();
  EXPECT_FALSE(jobs_.get(kKey)->deleted);
  clock_.advance(5s);
  pass();
  EXPECT_TRUE(jobs_.get(kKey)->deleted);
}

TEST_F(ReconcilerTest, RefusedCreationsMayRecover) {
  cluster_.refuse_creations(absl::UnavailableError("away"));
  EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  cluster_.refuse_creations(absl::OkStatus());
  pass();
  EXPECT_THAT(pods(), SizeIs(2));
}

TEST_F(ReconcilerTest, AFailureCarriesTheLastLinesOfTheLog) {
  bring_up();
  cluster_.kill("fashion-worker-0-0", SIGKILL);
  EXPECT_FALSE(pass().done);
  clock_.advance(limits_.verdict_grace);
  pass();
  EXPECT_EQ(status().phase, api::Phase::kFailed);
  EXPECT_THAT(status().message,
              HasSubstr("worker-0 (pod fashion-worker-0-0, pid 1002) was killed by signal 9 (SIGKILL)"));
  EXPECT_THAT(status().message, HasSubstr("last words of fashion-worker-0-0\n?[31mxxx"));
  EXPECT_LT(status().message.size(), 1000u) << "an endless line is cut";
  EXPECT_THAT(pods(), ElementsAre("fashion-worker-0-0")) << "the chief was deleted";
  EXPECT_TRUE(pass().done);
}

// The nodes' clocks are not the controller's.
TEST_F(ReconcilerTest, AVerdictsTimeIsCountedByTheControllersClock) {
  jobs_.edit([](api::TrainingJob& job) {
    job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
  });
  bring_up();
  clock_.advance(10min);
  cluster_.kill("fashion-worker-0-0", SIGKILL);
  clock_.advance(-10min);
  EXPECT_LE(pass().requeue_after, limits_.verdict_grace);
  clock_.advance(limits_.verdict_grace - 1ms);
  EXPECT_EQ(pass().requeue_after, 1ms);
  clock_.advance(1ms);
  pass();
  EXPECT_EQ(status().phase, api::Phase::kRestarting);
}

TEST_F(ReconcilerTest, WhatAMemberToldItselfItsLogDoesNotTellAgain) {
  bring_up();
  (*reports_.report_.lock())->culprit = plan::Culprit{.role = Role::kWorker,
                                                      .index = 0,
                                                      .kind = plan::CulpritKind::kFailed,
                                                      .evidence = "last words of fashion-worker-0-0"};
  cluster_.finish("fashion-worker-0-0", 1);
  pass();
  ASSERT_EQ(status().phase, api::Phase::kFailed);
  const std::string message = status().message;
  const std::size_t told = message.find("last words of");
  ASSERT_NE(told, std::string::npos);
  EXPECT_EQ(message.find("last words of", told + 1), std::string::npos) << message;
  EXPECT_THAT(message, HasSubstr(":\n?[31mxxx")) << "its other lines are there";
  EXPECT_FALSE(message.ends_with('\n'));
}

TEST_F(ReconcilerTest, WhatTheClusterTellsOfAnEndItsLogDoesNotTellAgain) {
  pass();
  cluster_.fail_to_start("fashion-worker-0-0",
                         "init container fetch failed: last words of fashion-worker-0-0");
  clock_.advance(limits_.verdict_grace);
  pass();
  ASSERT_EQ(status().phase, api::Phase::kFailed);
  const std::string message = status().message;
  const std::size_t told = message.find("last words of");
  ASSERT_NE(told, std::string::npos);
  EXPECT_EQ(message.find("last words of", told + 1), std::string::npos) << message;
  EXPECT_THAT(message, HasSubstr(":\n?[31mxxx")) << "its other lines are there";
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
  set_report(plan::ReportPhase::kFinished);
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
  EXPECT_EQ(store.mark_deleted("default/b").code(), absl::StatusCode::kNotFound);
  api::Status status;
  status.reason = "Because";
  ASSERT_TRUE(store.write_status("default/a", status).ok());
  EXPECT_EQ(store.remove("default/a", "another uid").code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(store.get("default/a")->deleted);
  ASSERT_TRUE(store.mark_deleted("default/a").ok());
  EXPECT_EQ(store.get("default/a")->job.status.reason, "Because");
  EXPECT_TRUE(store.get("default/a")->deleted);
}

}  // namespace
}  // namespace paceline::reconcile
