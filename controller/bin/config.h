#pragma once

// The controller's configuration file: apiVersion config.paceline.dev/v1alpha1, kind ControllerConfiguration.
// YAML or JSON, read as job files are: every error at once, each with line, column and what is allowed. Every
// field stands in docs/kubernetes.md.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "controller/api/diagnostic.h"
#include "controller/lease/election_core.h"

namespace paceline::controller {

struct LeaderElection {
  bool enabled = true;
  std::string ns;  // of the lease; empty: the controller's own
  std::string name = "paceline-controller";
  std::int64_t lease_duration_seconds = 15, renew_deadline_seconds = 10, retry_period_seconds = 2;
};

// TLS of the port on which members attach; the other ports that speak TLS have the same certificate.
struct Tls {
  bool enabled = false;
  // The authority that the controller makes, and that all replicas share, in the controller's own namespace.
  std::string secret = "paceline-controller-authority";
  // Yours instead, PEM, read again when they change; all three or none.
  std::string certificate_file, key_file, authority_file;
};

// HTTPS where people look at jobs.
struct DashboardTls {
  bool enabled = false;
  // For the name that people know it by, PEM, read again when they change; both, or none: as members'.
  std::string certificate_file, key_file;
};

// The dashboard remembers jobs that are deleted, and series from before its process.
struct HistorySettings {
  std::string path;                         // a file; empty: no history
  std::int64_t megabytes = 256, days = 90;  // of the file; of a job since it was over
};

// A bound on the series of jobs that have not ended; further ones are in the sums alone.
struct MetricsLimits {
  std::int64_t jobs = 1000, members = 1000;  // that have series of their own; 0: none
};

struct Config {
  std::string ns;  // whose jobs; empty: all namespaces'
  std::int64_t workers = 8;
  std::string trainer_image;                                 // of trainer containers that name none
  std::vector<std::string> node_taints, ignored_conditions;  // kube::NodeSigns
  LogFormat log_format = LogFormat::kJson;
  LogLevel log_level = LogLevel::kInfo;
  LogLevel member_log_level = LogLevel::kInfo;
  std::string health_address = "0.0.0.0:8080";
  bool health_tls = false;
  std::string dashboard_address;  // empty: no dashboard
  DashboardTls dashboard_tls;
  HistorySettings history;
  std::string coordinator_listen = "0.0.0.0:7070";
  std::string coordinator_address;  // for pods; empty: as it listens
  Tls tls;
  LeaderElection leader_election;
  MetricsLimits metrics;
};

struct ParsedConfig {
  std::optional<Config> config;  // present when there are no errors
  std::vector<api::Diagnostic> diagnostics;
};

// `file_name` only names the file in diagnostics. Pure.
ParsedConfig parse_config(std::string_view text, std::string_view file_name);

// What `identity`, whom members find at `address`, takes part in an election with.
lease::ElectionConfig election_config(const LeaderElection& election, std::string identity,
                                      std::string address);

// Whether a port has a certificate of the controller's own authority.
bool needs_authority(const Config& config);

// Empty, or what does not go together (also after flags have changed it).
std::string config_error(const Config& config);

const char* log_level_name(LogLevel level);  // "debug", "info", "warning", "error"

}  // namespace paceline::controller
