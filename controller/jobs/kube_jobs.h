#pragma once

// The jobs of an API server, with the rights of whoever its client is. Every error is in plain words
// (api_error_text.h); every call ends within kCallLimit of controller/cluster/kube. Thread-safe.

#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/pause.h"
#include "controller/jobs/api_error_text.h"
#include "controller/jobs/job_source.h"

namespace paceline::jobs {

inline constexpr char kFieldManager[] = "paceline";  // of what people change by our programs
inline constexpr std::size_t kMaxListed = 100'000;   // objects; more is RESOURCE_EXHAUSTED
// Events of one job, and as many of its pods: the newest are kept. The API server can't choose by a pod's
// job, so that all events of a namespace's pods go by, page by page.
inline constexpr std::size_t kMostEvents = 4'000;

class KubeJobs : public virtual JobSource {
 public:
  // `api` must outlive it. `cluster`: where it is, for people. `pause`: between two readings of a log.
  KubeJobs(kube::ApiClient& api, std::string cluster, std::stop_token stop,
           kube::Pause pause = kube::real_pause)
      : api_(api), cluster_(std::move(cluster)), stop_(std::move(stop)), pause_(std::move(pause)) {}

  // Sorted by namespace and name.
  absl::StatusOr<Listed> list_jobs(const std::string& ns) override;
  absl::StatusOr<kube::Json> job(const std::string& ns, const std::string& name) override;
  absl::StatusOr<std::vector<kube::SlimPod>> pods(const std::string& ns, const std::string& job) override;
  absl::StatusOr<std::vector<kube::SlimPod>> logged_pods(const std::string& ns,
                                                         const std::string& job) override {
    return pods(ns, job);
  }
  absl::Status read_log(const kube::SlimPod& pod, const LogRequest& request, const LogSink& sink,
                        std::stop_token stop) override;
  absl::StatusOr<Events> events(const std::string& ns, const std::string& job) override;
  absl::StatusOr<kube::Json> patch(const std::string& ns, const std::string& name, const kube::Json& patch,
                                   const std::string& what) override;
  absl::StatusOr<kube::Json> remove(const std::string& ns, const std::string& name, const std::string& uid,
                                    const std::string& propagation) override;

  absl::Status plain(const absl::Status& status, const Asked& asked) const {
    return api_error_text(status, asked, cluster_);
  }
  const std::string& cluster() const { return cluster_; }
  kube::ApiClient& api() { return api_; }
  const std::stop_token& stop() const { return stop_; }

 private:
  // Gives a list's pages as they come, and its version at the end. `first`: pages before it count no more,
  // since the API server has forgotten what followed them.
  using TakePage = std::function<void(std::vector<kube::Json> page, bool first)>;
  absl::StatusOr<std::string> list(const kube::Scope& scope, const Asked& asked, const TakePage& take);

  kube::ApiClient& api_;
  const std::string cluster_;
  const std::stop_token stop_;
  const kube::Pause pause_;
};

// The object as the API server gave it, without managedFields; with apiVersion and kind, which lists leave
// out.
kube::Json printable(kube::Json object);

// "team-a/digits"
std::string job_text(const std::string& ns, const std::string& name);

}  // namespace paceline::jobs
