#pragma once

// What LocalCluster writes down about a pod. Functions without state.

#include <string>

#include "absl/status/status.h"
#include "controller/cluster/cluster.h"
#include "controller/cluster/local/pod_protocol.h"

namespace paceline::cluster {

inline constexpr int kMaxNameBytes = 128;

// A random UUID (RFC 4122, version 4).
std::string new_uid();

// INVALID_ARGUMENT: the name is no DNS label of at most kMaxNameBytes, or there is no command.
absl::Status check_spec(const PodSpec& spec);

// Brings `pod` up to date with its supervisor's word; a pod that has ended stays as it is.
void take_notice(Pod& pod, const Notice& notice, WallTime now);

// The kernel killed it for want of memory. REQUIRES: it has ended by SIGKILL.
void set_oom_killed(Pod& pod);

// Somebody killed the supervisor, and the pod with it.
void set_supervisor_killed(Pod& pod, WallTime now);

}  // namespace paceline::cluster
