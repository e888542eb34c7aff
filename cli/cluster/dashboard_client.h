#pragma once

// Asks the dashboard that a controller serves (docs/dashboard-api.md) for what the API server does not know:
// jobs that are deleted, and series of steps. Errors are for people. Thread-safe.

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "controller/cluster/kube/credentials.h"
#include "controller/cluster/kube/transport.h"

namespace paceline::cli {

class DashboardClient {
 public:
  // `url`: https://paceline.example.org. A token goes to it: INVALID_ARGUMENT for one that would be sent in
  // the clear over a network. `ca_file`: the authority of its certificate, PEM; empty: the system's. An error
  // of read_file() for one that can't be read. UNAUTHENTICATED: these credentials have no token.
  static absl::StatusOr<std::unique_ptr<DashboardClient>> open(const std::string& url,
                                                               const std::string& ca_file,
                                                               kube::Credentials& credentials,
                                                               const Clock& clock);
  DashboardClient(std::unique_ptr<kube::Transport> transport, std::string url)
      : transport_(std::move(transport)), url_(std::move(url)) {}

  // The JSON at a path behind /api/v1. NOT_FOUND, PERMISSION_DENIED, UNAUTHENTICATED as the dashboard says;
  // UNAVAILABLE: it can't be reached, or can't say.
  absl::StatusOr<std::string> get(const std::string& path) const;

 private:
  const std::unique_ptr<kube::Transport> transport_;
  const std::string url_;
};

// Why an address is refused, and what is allowed; OK: it is not. Pure.
absl::Status check_dashboard_url(const std::string& url);

// Says how to name a dashboard.
absl::Status no_dashboard(const std::string& what);

}  // namespace paceline::cli
