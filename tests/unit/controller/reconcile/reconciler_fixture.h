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
class CountingStore final : public JobStore {
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
    StoredJob stored;
    stored.uid = "job-uid";
    stored.job.metadata.name = "fashion";
    stored.job.spec.training.emplace();
    stored.job.spec.replica_specs.chief = api::ReplicaSpec{1, {}, {}};
    stored.job.spec.replica_specs.worker = api::ReplicaSpec{1, {}, {}};
    PL_CHECK(jobs_.store_.add(stored).ok(), "the store is empty");
    limits_.worker_program = {"worker"};
    limits_.cores = 2;
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
  void set_report(plan::ReportPhase phase, Step step = 0) {
    auto report = reports_.report_.lock();
    const std::int64_t attempt = report->has_value() ? (*report)->attempt : 0;
    report->emplace().phase = phase;
    (*report)->attempt = attempt;
    (*report)->generation.value = 1;
    (*report)->progress.step = step;
  }
  // Pods run and members train.
  void bring_up() {
    pass();
    for (const std::string& name : pods()) cluster_.run(name);
    set_report(plan::ReportPhase::kRunning);
    pass();
  }

  FakeClock clock_;
  FakeCluster cluster_{clock_};
  CountingStore jobs_;
  FakeReports reports_;
  queue::WorkQueue queue_{clock_};
  plan::Limits limits_;
  std::optional<Reconciler> reconciler_;
};

}  // namespace paceline::reconcile
