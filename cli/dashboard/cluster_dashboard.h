#pragma once

// The dashboard of a cluster's jobs on this machine, with the rights of whoever the kubeconfig says: an
// informer of TrainingJobs, and the server at the loopback device. Destruction ends all connections.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "cli/cluster/job_client.h"

namespace paceline::cli {

class ClusterDashboard {
 public:
  struct Options {
    std::string cluster;  // where it is, for people
    std::string ns;       // whose jobs; empty: all namespaces'
    int port = 0;         // of 127.0.0.1; 0: the system's choice
    std::string program;  // "paceline", "kubectl paceline": for hints
  };
  // Errors, in plain words: the API server refuses a list of jobs; UNAVAILABLE: the port. The references
  // outlive it.
  static absl::StatusOr<std::unique_ptr<ClusterDashboard>> start(JobClient& jobs, Options options,
                                                                 const Clock& clock, const Logger& log);
  virtual ~ClusterDashboard() = default;

  // Opens it once, in one browser.
  virtual std::string new_address() = 0;
};

}  // namespace paceline::cli
