#pragma once

// A cluster in memory. Pods do only what a test says: run(), finish(), kill(). It passes the same contract
// test as the real ones. Thread-safe.

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "controller/cluster/cluster.h"

namespace paceline {

class FakeCluster final : public cluster::Cluster {
 public:
  explicit FakeCluster(const Clock& clock)
      : clock_(clock), caller_([this](std::stop_token stop) { call(stop); }) {}

  // ---- what a test does to it

  // Creations fail with this status until it is OK again.
  void refuse_creations(absl::Status status) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(status);
  }
  // So does whatever a job has once.
  void refuse_objects(absl::Status status) {
    const std::lock_guard lock(mutex_);
    objects_refusal_ = std::move(status);
  }
  // Calls of ensure_job() so far.
  std::vector<cluster::JobObjects> ensured() const {
    const std::lock_guard lock(mutex_);
    return ensured_;
  }
  void run(const std::string& name) {
    change(name, [this](cluster::Pod& pod) {
      pod.phase = cluster::PodPhase::kRunning;
      pod.pid = static_cast<std::int64_t>(1000 + uids_);
      pod.started = clock_.wall_now();
    });
  }
  void finish(const std::string& name, int exit_code) {
    change(name, [&](cluster::Pod& pod) {
      pod.exit_code = exit_code;
      end(pod, exit_code == 0 ? "Completed" : "Error", exit_code == 0);
    });
  }
  void kill(const std::string& name, int signal) {
    change(name, [&](cluster::Pod& pod) {
      pod.signal = signal;
      end(pod, "Error", false);
    });
  }
  void fail_to_start(const std::string& name, const std::string& message) {
    change(name, [&](cluster::Pod& pod) {
      pod.message = message;
      end(pod, "StartError", false);
    });
  }
  // The control plane has given up the pod's node.
  void lose_node(const std::string& name) {
    change(name, [](cluster::Pod& pod) { pod.node_not_ready = true; });
  }
  // Deleted pods end now, as if their grace had passed.
  void end_deleted() {
    const std::lock_guard lock(mutex_);
    std::erase_if(pods_, [&](const auto& entry) {
      if (entry.second.deleting) tell(entry.second);
      return entry.second.deleting;
    });
  }
  std::vector<cluster::Event> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  int creations() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(uids_);
  }
  // The grace of the last deletion of this pod.
  Duration grace(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return graces_.at(name);
  }
  // With false, deleted pods stay until end_deleted().
  void end_deleted_at_once(bool at_once) {
    const std::lock_guard lock(mutex_);
    at_once_ = at_once;
  }

  // ---- Cluster

  absl::StatusOr<cluster::Pod> create_pod(const cluster::PodSpec& spec) override {
    const std::lock_guard lock(mutex_);
    if (spec.name.empty() || spec.name.find('/') != std::string::npos || spec.command.empty()) {
      return absl::InvalidArgumentError("a pod needs a name and a command");
    }
    if (!refusal_.ok()) return refusal_;
    if (pods_.contains(spec.name)) return absl::AlreadyExistsError(str_cat("pod ", spec.name, " exists"));
    cluster::Pod& pod = pods_[spec.name];
    pod.spec = spec;
    pod.uid = str_cat("uid-", ++uids_);
    pod.host = "fake";
    pod.log_path = str_cat("/fake/", spec.name, ".log");
    tell(pod);
    return pod;
  }
  absl::Status delete_pod(const std::string& ns, const std::string& name, const std::string& uid,
                          Duration grace) override {
    const std::lock_guard lock(mutex_);
    const auto found = pods_.find(name);
    if (found == pods_.end() || found->second.spec.ns != ns || (!uid.empty() && found->second.uid != uid)) {
      return absl::NotFoundError(str_cat("pod ", name, " does not exist"));
    }
    graces_[name] = grace;
    found->second.deleting = true;
    tell(found->second);
    if (at_once_ || found->second.ended() || grace == Duration::zero()) pods_.erase(found);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<cluster::Pod>> list_pods(const std::string& ns,
                                                      const std::string& job) override {
    const std::lock_guard lock(mutex_);
    std::vector<cluster::Pod> result;
    for (const auto& [name, pod] : pods_) {
      if (pod.spec.ns == ns && pod.spec.job == job) result.push_back(pod);
    }
    return result;
  }
  absl::StatusOr<std::string> ensure_job(const cluster::JobObjects& job) override {
    const std::lock_guard lock(mutex_);
    ensured_.push_back(job);
    if (!objects_refusal_.ok()) return objects_refusal_;
    return tokens_.try_emplace(job.job_uid, job.token).first->second;
  }
  absl::Status record_event(const cluster::Event& event) override {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    return absl::OkStatus();
  }
  void watch(OnChange on_change) override {
    std::unique_lock lock(mutex_);
    on_change_ = std::move(on_change);
    settled_.wait(lock, [this] { return !calling_; });
    for (const auto& [name, pod] : pods_) tell(pod);
  }
  absl::StatusOr<std::string> tail_log(const cluster::Pod& pod, int) override {
    return str_cat("last words of ", pod.spec.name, "\n\x1b[31m", std::string(5000, 'x'), "\n");
  }

 private:
  template <typename Change>
  void change(const std::string& name, Change what) {
    const std::lock_guard lock(mutex_);
    cluster::Pod& pod = pods_.at(name);
    what(pod);
    tell(pod);
  }
  void end(cluster::Pod& pod, const char* reason, bool well) {
    pod.phase = well ? cluster::PodPhase::kSucceeded : cluster::PodPhase::kFailed;
    pod.reason = reason;
    pod.finished = clock_.wall_now();
  }
  void tell(const cluster::Pod& pod) {
    changed_.insert(pod.spec.ns + "/" + pod.spec.job);
    settled_.notify_all();
  }

  void call(std::stop_token stop) {
    const std::stop_callback wake(stop, [this] {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      settled_.notify_all();
    });
    for (;;) {
      std::set<std::string> keys;
      OnChange on_change;
      {
        std::unique_lock lock(mutex_);
        settled_.wait(lock, [this] { return stopping_ || (on_change_ && !changed_.empty()); });
        if (stopping_) return;
        keys.swap(changed_);
        on_change = on_change_;
        calling_ = true;
      }
      for (const std::string& key : keys) on_change(key);
      const std::lock_guard lock(mutex_);
      calling_ = false;
      settled_.notify_all();
    }
  }

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable settled_;
  std::map<std::string, cluster::Pod> pods_;
  std::map<std::string, Duration> graces_;
  std::vector<cluster::Event> events_;
  std::set<std::string> changed_;
  absl::Status refusal_, objects_refusal_;
  std::vector<cluster::JobObjects> ensured_;
  std::map<std::string, std::string> tokens_;  // by the job's uid
  OnChange on_change_;
  std::int64_t uids_ = 0;
  bool calling_ = false, stopping_ = false, at_once_ = true;
  std::jthread caller_;  // last: it uses all of the above
};

}  // namespace paceline
