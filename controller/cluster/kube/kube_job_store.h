#pragma once

// TrainingJobs on Kubernetes: kept by an informer, parsed by controller/api once per generation, their status
// written by server-side apply to the status sub-resource, and only when it changed. What was written is read
// back at once. Conditions of types that are not ours are neither read nor written: the list is a map by
// type, and apply leaves to others what it does not name.
//
// An object that the parser refuses gets phase Failed, reason InvalidSpec and the errors, and is NOT_FOUND to
// get(): there is nothing to run, until somebody edits it; then it is Pending. One that has begun (an upgrade
// may have made validation stricter) is FAILED_PRECONDITION: it is left as it is, says so in condition
// InvalidSpec, and goes on once somebody has edited it. A job that has ended is not refused any more. One
// that another controller manages (runPolicy.managedBy, whatever else the spec says) is refused by nobody
// here: it is NOT_FOUND where it can't be parsed, and nothing is written to it.
//
// Thread-safe. get() is UNAVAILABLE until the first list is complete. write_status() writes to the very
// version of the object that was read: ABORTED where it has changed since (by a user, or by a controller that
// led before and whose last words came late), or where another one has taken its name.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/informer.h"
#include "controller/cluster/kube/object_store.h"
#include "controller/reconcile/job_store.h"

namespace paceline::kube {

struct KubeJobStoreOptions {
  std::string ns;  // empty: all namespaces
  std::uint64_t seed = 11;
};

class KubeJobStore final : public reconcile::JobStore {
 public:
  // The references must outlive it. The informer starts at once; `on_change` runs in its thread.
  KubeJobStore(ApiClient& api, const Clock& clock, Logger log, Informer::OnChange on_change,
               KubeJobStoreOptions options = {});

  void list_again() { informer_.list_again(); }
  absl::Status wait_synced(Duration timeout) { return informer_.wait_synced(timeout); }
  // Of all jobs, those that are refused among them.
  std::vector<std::string> keys() { return store_.job_keys(); }

  absl::StatusOr<reconcile::StoredJob> get(const std::string& key) override;
  absl::Status write_status(const std::string& key, const api::Status& status,
                            const std::string& version) override;
  // Its children go with it.
  absl::Status remove(const std::string& key, const std::string& uid) override;

 private:
  // What a spec says, shared by all versions of an object that have it.
  struct Spec {
    std::optional<api::TrainingJob> job;  // without: refused
    std::map<Role, std::string> pod_templates;
    bool keeps_checkpoints = true;
    std::string errors;
    bool others = false;  // another controller manages it, and may read specs otherwise
  };
  // Of a status what only the API server reads, as it shows it.
  struct Counts {
    std::string ready;
    std::optional<std::int64_t> replicas, checkpoint_step;
  };
  struct SlimJob {
    std::string key, job_key, uid, resource_version;
    SpecGeneration generation;
    bool deleted = false;
    api::Metadata metadata;
    std::shared_ptr<const Spec> spec;
    api::Status status;
    Counts counts;
    bool operator==(const SlimJob& other) const;
  };
  struct Cached {
    SpecGeneration generation;
    std::weak_ptr<const Spec> spec;
  };
  std::optional<SlimJob> decode(const Json& object);
  static std::shared_ptr<const Spec> read_spec(const Json& object, const api::Metadata& metadata);
  static Counts counts_of(const api::TrainingJob& job, const api::Status& status);
  static Counts counts_of(const Json& status);
  absl::Status refuse(const SlimJob& job);
  absl::Status leave_alone(const SlimJob& job);
  absl::Status write(const SlimJob& job, const api::Status& status, const std::string& version);

  ApiClient& api_;
  const Clock& clock_;
  Guarded<std::map<std::string, Cached>> specs_;  // by uid
  // The last write: the version that came of it, and a hash of the status.
  struct Written {
    std::string resource_version;
    std::size_t hash = 0;
    bool operator==(const Written&) const = default;
  };
  Guarded<std::map<std::string, Written>> written_;  // by uid
  ObjectStore<SlimJob> store_;
  Informer informer_;  // last: it calls into the above
};

}  // namespace paceline::kube
