#include "controller/reconcile/job_store.h"

#include "base/status.h"

namespace paceline::reconcile {

absl::Status MemoryJobStore::add(StoredJob job) {
  const std::string key = api::job_key(job.job);
  auto jobs = jobs_.lock();
  if (!jobs->try_emplace(key, std::move(job)).second)
    return absl::AlreadyExistsError(str_cat("job ", key, " exists"));
  return absl::OkStatus();
}

absl::Status MemoryJobStore::mark_deleted(const std::string& key) {
  auto jobs = jobs_.lock();
  const auto found = jobs->find(key);
  if (found == jobs->end()) return absl::NotFoundError(str_cat("job ", key, " does not exist"));
  found->second.deleted = true;
  return absl::OkStatus();
}

absl::Status MemoryJobStore::remove(const std::string& key, const std::string& uid) {
  auto jobs = jobs_.lock();
  const auto found = jobs->find(key);
  if (found == jobs->end() || found->second.uid != uid)
    return absl::NotFoundError(str_cat("job ", key, " of uid ", uid, " does not exist"));
  found->second.deleted = true;
  return absl::OkStatus();
}

absl::StatusOr<StoredJob> MemoryJobStore::get(const std::string& key) {
  auto jobs = jobs_.lock();
  const auto found = jobs->find(key);
  if (found == jobs->end()) return absl::NotFoundError(str_cat("job ", key, " does not exist"));
  return found->second;
}

absl::Status MemoryJobStore::write_status(const std::string& key, const api::Status& status,
                                          const std::string& /*version*/) {
  auto jobs = jobs_.lock();
  const auto found = jobs->find(key);
  if (found == jobs->end()) return absl::NotFoundError(str_cat("job ", key, " does not exist"));
  found->second.job.status = status;
  return absl::OkStatus();
}

}  // namespace paceline::reconcile
