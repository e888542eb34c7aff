#pragma once

// What the commands ask an API server for. Every error is in plain words (words.h); every call ends within
// kCallLimit of controller/cluster/kube. Thread-safe.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/cluster/event_rows.h"
#include "cli/cluster/words.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/pod.h"

namespace paceline::cli {

inline constexpr char kFieldManager[] = "paceline";
inline constexpr std::size_t kMaxListed = 100'000;  // objects; more is RESOURCE_EXHAUSTED

class JobClient {
 public:
  // `api` must outlive it. `cluster`: where it is, for people.
  JobClient(kube::ApiClient& api, std::string cluster, std::stop_token stop)
      : api_(api), cluster_(std::move(cluster)), stop_(std::move(stop)) {}

  // Objects of one moment; a watch goes on from their version.
  struct Listed {
    std::vector<kube::Json> objects;
    std::string resource_version;
  };
  // Sorted by namespace and name. `ns` empty: of all namespaces.
  absl::StatusOr<Listed> list_jobs(const std::string& ns);
  absl::StatusOr<std::vector<kube::Json>> jobs(const std::string& ns);
  // NOT_FOUND names those that there are.
  absl::StatusOr<kube::Json> job(const std::string& ns, const std::string& name);
  // The one of that name; where it is empty, the newest that goes on, else the newest.
  absl::StatusOr<kube::Json> choose(const std::string& ns, const std::string& name);
  // Of all attempts, by role, index and attempt.
  absl::StatusOr<std::vector<kube::SlimPod>> pods(const std::string& ns, const std::string& job);
  struct Events {
    std::vector<EventView> events;
    std::string resource_version;
  };
  // Of the job and its pods, the newest last; `job` empty: of all jobs.
  absl::StatusOr<Events> events(const std::string& ns, const std::string& job);

  struct Applied {
    kube::Json object;
    const char* what;  // "created", "configured", "unchanged"
  };
  absl::StatusOr<Applied> apply(const std::string& ns, const std::string& name, const kube::Json& object,
                                bool force, bool dry_run);
  absl::StatusOr<kube::Json> patch(const std::string& ns, const std::string& name, const kube::Json& patch,
                                   const std::string& what);
  // The object as it goes; `propagation` as kubectl's --cascade, capitalised.
  absl::StatusOr<kube::Json> remove(const std::string& ns, const std::string& name,
                                    const std::string& propagation);
  // Whether the object of this uid is still there.
  absl::StatusOr<bool> exists(const std::string& ns, const std::string& name, const std::string& uid);

  absl::Status plain(const absl::Status& status, const Asked& asked) const {
    return in_plain_words(status, asked, cluster_);
  }
  kube::ApiClient& api() { return api_; }
  const std::stop_token& stop() const { return stop_; }

 private:
  absl::StatusOr<Listed> list(const kube::Scope& scope, const Asked& asked);
  kube::ApiClient& api_;
  const std::string cluster_;
  const std::stop_token stop_;
};

// "team-a/digits"
std::string job_text(const std::string& ns, const std::string& name);

}  // namespace paceline::cli
