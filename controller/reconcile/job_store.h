#pragma once

// Where jobs are kept: the API server, a run's folder, or memory. Thread-safe.

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/guarded.h"
#include "controller/api/types.h"

namespace paceline::reconcile {

struct StoredJob {
  api::TrainingJob job;
  std::string uid;
  std::string version;                        // what a write checks; empty where only one writes
  bool deleted = false;                       // asked to be deleted; its pods must go first
  SpecGeneration generation;                  // metadata.generation
  std::map<Role, std::string> pod_templates;  // JSON, as the user wrote them; Kubernetes only
  bool keeps_checkpoints = true;              // false: they go with the pod that wrote them
};

// It has no members, and shall have none, until it is resumed.
bool is_suspended(const StoredJob& job);
// It has not ended, nor is it suspended, to be deleted, or managed by somebody else: a coordinator is to be
// had for it.
bool may_have_members(const StoredJob& job);

class JobStore {
 public:
  virtual ~JobStore() = default;
  // By key "namespace/name"; NOT_FOUND where there is none, FAILED_PRECONDITION where it is to be left as it
  // is until it changes, of which the store tells. At least as new as what write_status() of this store, or
  // of a leader before, wrote.
  virtual absl::StatusOr<StoredJob> get(const std::string& key) = 0;
  // `version`: of the StoredJob that the status was worked out from. ABORTED where it has changed since: look
  // at it again. Empty: whatever stands there now.
  virtual absl::Status write_status(const std::string& key, const api::Status& status,
                                    const std::string& version) = 0;
  // Asks for the job to be deleted; NOT_FOUND where there is none of this uid.
  virtual absl::Status remove(const std::string& key, const std::string& uid) = 0;
};

class MemoryJobStore final : public JobStore {
 public:
  // ALREADY_EXISTS for a second one of the same key.
  absl::Status add(StoredJob job);
  absl::StatusOr<StoredJob> get(const std::string& key) override;
  absl::Status write_status(const std::string& key, const api::Status& status,
                            const std::string& version = {}) override;
  absl::Status remove(const std::string& key, const std::string& uid) override;

 private:
  Guarded<std::map<std::string, StoredJob>> jobs_;
};

}  // namespace paceline::reconcile
