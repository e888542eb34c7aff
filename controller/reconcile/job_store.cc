#include "controller/reconcile/job_store.h"

#include "base/status.h"
#include "controller/plan/plan.h"

namespace paceline::reconcile {

bool is_suspended(const StoredJob& job) {
  const api::Phase phase = job.job.status.phase;
  return job.job.spec.run_policy.suspend &&
         (phase == api::Phase::kSuspended || phase == api::Phase::kPending);
}

bool may_have_members(const StoredJob& job) {
  return !job.deleted && !plan::is_terminal(job.job.status.phase) && !is_suspended(job) &&
         api::is_ours(job.job.spec.run_policy.managed_by);
}

absl::Status MemoryJobStore::add(StoredJob job) {
  const std::string key = api::job_key(job.job);
  auto jobs = jobs_.lock();
  if (!jobs->try_emplace(key, std::move(job)).second)
    return absl::AlreadyExistsError(str_cat("job ", key, " exists"));
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
