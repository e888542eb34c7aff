#pragma once

// The model of the API server: TrainingJobs and pods, each write of which makes a new version of all. What it
// was at any version is kept, so that a reader may be shown the past.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/cluster/cluster.h"
#include "controller/lease/election_core.h"
#include "controller/reconcile/job_store.h"

namespace paceline::simulation {

class ApiServer {
 public:
  enum class Kind : std::uint8_t { kJob, kPod };
  struct Change {
    std::uint64_t version = 0;
    Kind kind = Kind::kJob;
    std::string key;  // namespace/name
    bool removed = false;
    std::shared_ptr<const reconcile::StoredJob> job;
    std::shared_ptr<const cluster::Pod> pod;
  };

  // A watcher hears of the number of each change, in order.
  void watch(std::function<void(std::size_t number)> watcher) { watchers_.push_back(std::move(watcher)); }
  const Change& change(std::size_t number) const { return changes_[number]; }
  std::size_t changes() const { return changes_.size(); }
  // The numbers of the changes that made the objects of this kind that were there after the first `count`
  // changes.
  std::vector<std::size_t> objects(Kind kind, std::size_t count) const;

  // The errors are the API server's: ALREADY_EXISTS, NOT_FOUND, ABORTED.
  absl::Status create_job(reconcile::StoredJob job);
  absl::StatusOr<std::size_t> write_status(const std::string& key, const std::string& uid,
                                           const api::Status& status, const std::string& version);
  absl::Status delete_job(const std::string& key, const std::string& uid);
  void edit_job(const std::string& key, const std::function<void(reconcile::StoredJob&)>& edit);
  absl::StatusOr<std::size_t> create_pod(const cluster::PodSpec& spec);
  // A deletion is asked for: whoever runs the pod ends and removes it. The answer's number, where it is one.
  absl::StatusOr<std::optional<std::size_t>> delete_pod(const std::string& key, const std::string& uid,
                                                        Duration grace, const std::string& why = "");
  // Both do nothing where it is gone.
  void edit_pod(const std::string& key, const std::function<void(cluster::Pod&)>& edit);
  void remove_pod(const std::string& key);

  // These are there now; null: it is not.
  const reconcile::StoredJob* job(const std::string& key) const;
  const cluster::Pod* pod(const std::string& key) const;
  std::vector<const cluster::Pod*> pods() const;
  Duration grace(const std::string& key) const { return graces_.at(key); }

  absl::StatusOr<lease::Seen> write_lease(const lease::ElectionCore::Write& write);
  std::optional<lease::Seen> lease() const { return lease_; }

 private:
  std::size_t put(const std::string& key, reconcile::StoredJob job);
  std::size_t put(const std::string& key, cluster::Pod pod);
  std::size_t tell(Change change);

  std::uint64_t version_ = 0, uids_ = 0;
  std::vector<Change> changes_;
  std::map<std::string, std::size_t> jobs_, pods_;  // the number of the change that made it as it is
  std::map<std::string, Duration> graces_;          // of pods that are to be deleted
  std::optional<lease::Seen> lease_;
  std::vector<std::function<void(std::size_t)>> watchers_;
};

}  // namespace paceline::simulation
