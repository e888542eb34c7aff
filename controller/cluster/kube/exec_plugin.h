#pragma once

// Runs credential plug-ins: programs that a kubeconfig names, which print a credential.

#include <cstddef>
#include <stop_token>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/cluster/kube/endpoint.h"
#include "controller/cluster/kube/exec_credential.h"
#include "controller/cluster/kube/kubeconfig.h"

namespace paceline::kube {

inline constexpr Duration kExecTimeout = std::chrono::seconds(60);
inline constexpr Duration kInteractiveExecTimeout = std::chrono::minutes(5);  // somebody types or logs in
inline constexpr std::size_t kMaxExecOutput = 1u << 20;

// Runs the plug-in to its end, in a process group of its own, with our environment and the plug-in's; its
// descendants are killed with it. Where the plug-in may talk to the user (a terminal is there, and its
// interactiveMode allows it) it shares our terminal. UNAUTHENTICATED, with the last of what the plug-in wrote
// to stderr, when it can't be started, fails, prints too much or no credential, or takes longer than
// `timeout`; CANCELLED on `stop`.
absl::StatusOr<ExecCredential> run_exec_plugin(const ExecPlugin& plugin, const Endpoint& endpoint,
                                               Duration timeout, std::stop_token stop);

// Whether this plug-in would share our terminal.
bool exec_is_interactive(const ExecPlugin& plugin);

}  // namespace paceline::kube
