#pragma once

// How a user says that a command is for a cluster, and which (docs/cli.md, Here or on a cluster).

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "cli/cluster/call.h"
#include "cli/session.h"

namespace paceline::cli {

inline constexpr const char* kClusterGroup = "On a cluster";  // of options, in --help

struct ClusterFlags {
  bool cluster = false;
  std::string context, kubeconfig, ns, dashboard, dashboard_ca;
  bool all_namespaces = false;
  bool asks_dashboard = false;  // this call needs what only a controller's dashboard knows
};

enum class Where : std::uint8_t { kBoth, kClusterOnly };
// Adds --cluster, --context, --kubeconfig and -n, and -A where asked for.
std::shared_ptr<ClusterFlags> add_cluster_flags(CLI::App& command, const Session& session, Where where,
                                                bool with_all = false);

// Adds --dashboard and --dashboard-ca, of a command that asks a controller's dashboard.
void add_dashboard_flag(CLI::App& command, ClusterFlags& flags);

// Whether a command that works on both is for a cluster.
bool is_on_cluster(const Session& session, const ClusterFlags& flags);

// A job's name as people give it; empty stays empty. False: it is none, and the session says so.
bool take_job_name(Session& session, const std::string& text, std::string& name);
// The same, or a run's as it is.
bool take_name(Session& session, const ClusterFlags& flags, const std::string& text, std::string& name);

// Follow: it goes on until something ends; ctrl-C asks it to end, a second one or a second later ends it.
enum class Mode : std::uint8_t { kOnce, kFollow };
// Opens the cluster and lets `work` do it; its error is the session's.
void on_cluster(Session& session, const ClusterFlags& flags, Mode mode,
                const std::function<absl::Status(Call&)>& work);
// The same, or with the runs of this machine where the flags don't say that a cluster is meant.
void on_jobs(Session& session, const ClusterFlags& flags, Mode mode,
             const std::function<absl::Status(Call&)>& work);

}  // namespace paceline::cli
