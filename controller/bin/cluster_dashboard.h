#pragma once

// The dashboard that a replica of the controller serves: an informer of TrainingJobs of its own, the gate of
// bearer tokens, the server, and the history where one is kept. Every replica shows the same, whether it
// leads or not: jobs by their status. The history is of the replica that has its file.
// Viewers' actions go out with their own tokens, never with the controller's rights. Thread-safe;
// destruction ends all connections.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/cluster/kube/transport.h"
#include "controller/dashboard/job_history.h"
#include "controller/web/server_certificate.h"

namespace paceline::controller {

// The way to the API server with somebody's bearer token.
using TransportOf = std::function<absl::StatusOr<std::unique_ptr<kube::Transport>>(const std::string& token)>;

struct ClusterDashboardOptions {
  std::string address;   // IP:PORT; port 0: the system's choice
  web::TlsFiles tls;     // given: HTTPS
  std::string ns;        // whose jobs; empty: all namespaces'
  std::string instance;  // of this process, in events
  TransportOf transport_of;
  std::uint64_t seed = 1;
  std::optional<dashboard::HistoryOptions> history = std::nullopt;  // nothing: none is kept
};

class ClusterDashboard {
 public:
  // Errors: an address that can't be listened on. The references outlive it.
  static absl::StatusOr<std::unique_ptr<ClusterDashboard>> start(ClusterDashboardOptions options,
                                                                 kube::Transport& transport,
                                                                 const Clock& clock, const Logger& log);
  virtual ~ClusterDashboard() = default;
  virtual int port() const = 0;
};

}  // namespace paceline::controller
