#pragma once

// A reconciler of one job, in a cluster in memory, with a coordinator that says what a test says.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "controller/reconcile/job_store.h"
#include "controller/reconcile/reconciler.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_cluster.h"

namespace paceline::reconcile {

inline constexpr char kKey[] = "default/fashion";

// A job of a chief and so many workers.
inline StoredJob stored_job(const std::string& name = "fashion", std::int64_t workers = 0) {
  StoredJob stored{.uid = "job-uid"};
  stored.job.metadata.name = name;
  stored.job.spec.training.emplace();
  stored.job.spec.replica_specs.chief.emplace();
  if (workers > 0) stored.job.spec.replica_specs.worker = api::ReplicaSpec{.replicas = workers};
  return stored;
}

inline plan::Limits small_limits() {
  plan::Limits limits;
  limits.worker_program = {"worker"};
  limits.cores = 2;
  return limits;
}

// Another cluster, for tests that change what it answers.
class OtherCluster : public cluster::Cluster {
 public:
  explicit OtherCluster(cluster::Cluster& cluster) : cluster_(cluster) {}
  absl::StatusOr<cluster::Pod> create_pod(const cluster::PodSpec& spec) override {
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
  absl::StatusOr<std::string> ensure_job(const cluster::JobObjects& job) override {
    return cluster_.ensure_job(job);
  }
  absl::Status record_event(const cluster::Event& event) override { return cluster_.record_event(event); }
  void watch(OnChange on_change) override { cluster_.watch(std::move(on_change)); }
  absl::StatusOr<std::string> tail_log(const cluster::Pod& pod, int lines) override {
    return cluster_.tail_log(pod, lines);
  }

 private:
  cluster::Cluster& cluster_;
};

class FakeReports final : public ReportSource {
 public:
  std::optional<plan::JobReport> report(const std::string&) override { return *report_.lock(); }
  void pods_seen(const std::string&, const std::vector<cluster::Pod>& pods) override {
    *seen_.lock() = pods.size();
  }
  void stop(const std::string&, const plan::StopMembers&) override { ++*stops_.lock(); }
  void job_over(const std::string&) override { ++*overs_.lock(); }
  void pods_gone(const std::string&, const std::vector<std::string>& names) override {
    *gone_.lock() = names;
  }
  void last_words_kept(const std::string&, std::int64_t attempt) override { *kept_.lock() = attempt; }
  std::map<std::string, std::string> pod_environment(const std::string&) override {
    return {{"PACELINE_COORDINATOR", "127.0.0.1:1"}};
  }
  Guarded<std::optional<plan::JobReport>> report_{plan::JobReport{}};
  Guarded<std::size_t> seen_{std::size_t{0}};
  Guarded<std::vector<std::string>> gone_;
  // The next attempt has another coordinator, but while members leave.
  absl::Status job_seen(const std::string&, const StoredJob& job) override {
    const std::int64_t attempt = job.job.status.restarts.attempt;
    *attempt_.lock() = attempt;
    auto report = report_.lock();
    if (report->has_value() && (*report)->attempt < attempt && !*leaving_.lock())
      report->emplace().attempt = attempt;
    return *job_seen_.lock();
  }
  Guarded<absl::Status> job_seen_;
  Guarded<int> stops_{0}, overs_{0};
  Guarded<std::int64_t> attempt_{std::int64_t{-1}}, kept_{std::int64_t{-1}};
  Guarded<bool> leaving_{false};
};

// Counts what is written, and can fail.
class CountingStore : public JobStore {
 public:
  absl::StatusOr<StoredJob> get(const std::string& key) override {
    PL_ASSIGN_OR_RETURN(StoredJob stored, store_.get(key));
    edit_(stored.job);
    return stored;
  }
  void edit(std::function<void(api::TrainingJob&)> edit) { edit_ = std::move(edit); }
  absl::Status write_status(const std::string& key, const api::Status& status,
                            const std::string& version) override {
    ++*writes_.lock();
    PL_RETURN_IF_ERROR(*failure_.lock());
    return store_.write_status(key, status, version);
  }
  absl::Status remove(const std::string& key, const std::string& uid) override {
    return store_.remove(key, uid);
  }
  MemoryJobStore store_;
  Guarded<int> writes_{0};
  Guarded<absl::Status> failure_;

 private:
  std::function<void(api::TrainingJob&)> edit_ = [](api::TrainingJob&) {};
};

class ReconcilerTest : public ::testing::Test {
 protected:
  ReconcilerTest() {
    PL_CHECK(jobs_.store_.add(stored_job("fashion", 1)).ok(), "the store is empty");
    reconciler_.emplace(cluster_, jobs_, reports_, clock_, queue_, limits_, Logger::none());
  }
  plan::Plan pass() {
    auto plan = reconciler_->reconcile_once(kKey);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *std::move(plan);
  }
  std::vector<std::string> pods() {
    const std::vector<cluster::Pod> list = cluster_.list_pods("default", "fashion").value();
    std::vector<std::string> names;
    for (const cluster::Pod& pod : list) names.push_back(pod.spec.name);
    return names;
  }
  api::Status status() { return jobs_.get(kKey)->job.status; }
  // A worker that fails is replaced, at most so often.
  void replace_workers(std::int64_t backoff_limit = api::RunPolicy().backoff_limit) {
    jobs_.edit([backoff_limit](api::TrainingJob& job) {
      job.spec.replica_specs.worker->restart_policy = api::RestartPolicy::kOnFailure;
      job.spec.run_policy.backoff_limit = backoff_limit;
    });
  }
  void set_report(plan::JobState phase, Step step = 0) {
    auto report = reports_.report_.lock();
    const std::int64_t attempt = report->has_value() ? (*report)->attempt : 0;
    report->emplace().state = phase;
    (*report)->attempt = attempt;
    (*report)->generation.value = 1;
    (*report)->progress.step = step;
  }
  // Pods run and members train.
  void bring_up() {
    pass();
    for (const std::string& name : pods()) cluster_.run(name);
    set_report(plan::JobState::kRunning);
    pass();
  }

  FakeClock clock_;
  FakeCluster cluster_{clock_};
  CountingStore jobs_;
  FakeReports reports_;
  queue::WorkQueue queue_{clock_};
  plan::Limits limits_ = small_limits();
  std::optional<Reconciler> reconciler_;
};

}  // namespace paceline::reconcile
