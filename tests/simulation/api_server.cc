#include "tests/simulation/api_server.h"

#include <utility>

#include "base/text.h"

namespace paceline::simulation {

std::vector<std::size_t> ApiServer::objects(Kind kind, std::size_t count) const {
  std::map<std::string, std::size_t> there;
  for (std::size_t i = 0; i < count; ++i) {
    const Change& each = changes_[i];
    if (each.kind != kind) continue;
    if (each.removed) {
      there.erase(each.key);
    } else {
      there[each.key] = i;
    }
  }
  std::vector<std::size_t> numbers;
  for (const auto& [_, number] : there) numbers.push_back(number);
  return numbers;
}

std::size_t ApiServer::tell(Change change) {
  change.version = ++version_;
  changes_.push_back(std::move(change));
  const std::size_t number = changes_.size() - 1;
  for (const auto& watcher : watchers_) watcher(number);
  return number;
}

std::size_t ApiServer::put(const std::string& key, reconcile::StoredJob job) {
  job.version = str_cat(version_ + 1);
  jobs_[key] = changes_.size();
  return tell(
      {.kind = Kind::kJob, .key = key, .job = std::make_shared<const reconcile::StoredJob>(std::move(job))});
}

std::size_t ApiServer::put(const std::string& key, cluster::Pod pod) {
  pods_[key] = changes_.size();
  return tell({.kind = Kind::kPod, .key = key, .pod = std::make_shared<const cluster::Pod>(std::move(pod))});
}

absl::Status ApiServer::create_job(reconcile::StoredJob job) {
  const std::string key = api::job_key(job.job);
  if (jobs_.contains(key)) return absl::AlreadyExistsError(key);
  job.uid = str_cat("job-", ++uids_);
  job.generation.value = 1;
  put(key, std::move(job));
  return absl::OkStatus();
}

absl::StatusOr<std::size_t> ApiServer::write_status(const std::string& key, const std::string& uid,
                                                    const api::Status& status, const std::string& version) {
  const reconcile::StoredJob* const there = job(key);
  if (there == nullptr || there->uid != uid) return absl::NotFoundError(key);
  if (!version.empty() && there->version != version) return absl::AbortedError(str_cat(key, " has changed"));
  reconcile::StoredJob next = *there;
  next.job.status = status;
  return put(key, std::move(next));
}

absl::Status ApiServer::delete_job(const std::string& key, const std::string& uid) {
  const reconcile::StoredJob* const there = job(key);
  if (there == nullptr || (!uid.empty() && there->uid != uid)) return absl::NotFoundError(key);
  Change change{.kind = Kind::kJob, .key = key, .removed = true, .job = changes_[jobs_.at(key)].job};
  jobs_.erase(key);
  tell(std::move(change));
  return absl::OkStatus();
}

void ApiServer::edit_job(const std::string& key, const std::function<void(reconcile::StoredJob&)>& edit) {
  const reconcile::StoredJob* const there = job(key);
  if (there == nullptr) return;
  reconcile::StoredJob next = *there;
  edit(next);
  put(key, std::move(next));
}

absl::StatusOr<std::size_t> ApiServer::create_pod(const cluster::PodSpec& spec) {
  const std::string key = str_cat(spec.ns, "/", spec.name);
  if (pods_.contains(key)) return absl::AlreadyExistsError(str_cat("pod ", key, " exists"));
  cluster::Pod pod{.spec = spec, .uid = str_cat("pod-", ++uids_)};
  return put(key, std::move(pod));
}

absl::StatusOr<std::optional<std::size_t>> ApiServer::delete_pod(const std::string& key,
                                                                 const std::string& uid, Duration grace,
                                                                 const std::string& why) {
  const cluster::Pod* const there = pod(key);
  if (there == nullptr || (!uid.empty() && there->uid != uid))
    return absl::NotFoundError(str_cat("pod ", key));
  const auto known = graces_.find(key);
  if (known != graces_.end() && known->second <= grace) return std::optional<std::size_t>();
  graces_[key] = grace;
  cluster::Pod next = *there;
  next.deleting = true;
  next.ended_first |= !there->deleting && there->ended();
  if (!why.empty() && !next.ended()) next.reason = why;
  return std::optional(put(key, std::move(next)));
}

void ApiServer::edit_pod(const std::string& key, const std::function<void(cluster::Pod&)>& edit) {
  const cluster::Pod* const there = pod(key);
  if (there == nullptr) return;
  cluster::Pod next = *there;
  edit(next);
  put(key, std::move(next));
}

void ApiServer::remove_pod(const std::string& key) {
  const auto found = pods_.find(key);
  if (found == pods_.end()) return;
  Change change{.kind = Kind::kPod, .key = key, .removed = true, .pod = changes_[found->second].pod};
  pods_.erase(found);
  graces_.erase(key);
  tell(std::move(change));
}

const reconcile::StoredJob* ApiServer::job(const std::string& key) const {
  const auto found = jobs_.find(key);
  return found == jobs_.end() ? nullptr : changes_[found->second].job.get();
}

const cluster::Pod* ApiServer::pod(const std::string& key) const {
  const auto found = pods_.find(key);
  return found == pods_.end() ? nullptr : changes_[found->second].pod.get();
}

std::vector<const cluster::Pod*> ApiServer::pods() const {
  std::vector<const cluster::Pod*> all;
  for (const auto& [_, number] : pods_) all.push_back(changes_[number].pod.get());
  return all;
}

absl::StatusOr<lease::Seen> ApiServer::write_lease(const lease::ElectionCore::Write& write) {
  if (write.version.empty() ? lease_.has_value() : (!lease_ || lease_->version != write.version))
    return absl::AbortedError("the lease has changed");
  lease_ = lease::Seen{write.record, str_cat(++version_)};
  return *lease_;
}

}  // namespace paceline::simulation
