#pragma once

// A pod's supervisor, the program paceline-pod (pod_main.cc), as LocalCluster starts it. What the two say to
// each other: pod_protocol.h.

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace paceline::cluster {

struct Supervisor {
  pid_t pid = 0;
  UniqueFd socket;  // non-blocking for reads and writes with MSG_DONTWAIT; closing it kills the pod
  UniqueFd pidfd;   // readable when the supervisor is a zombie
};

struct SupervisorPlan {
  std::string program;  // paceline-pod
  std::vector<std::string> command;
  std::map<std::string, std::string> env;  // the whole environment
  std::string folder;                      // working directory; exists
  std::string log_path;                    // appended to; created if missing
};

// Starts one, in a session of its own, with no signal blocked or ignored, and no descriptors but 0
// (/dev/null), 1 and 2 (the log) and the socket. Nothing is allocated between fork and exec (posix_spawn), so
// any thread may call it. Errors: of the log, of descriptors (RESOURCE_EXHAUSTED), of the program.
absl::StatusOr<Supervisor> start_supervisor(const SupervisorPlan& plan);

}  // namespace paceline::cluster
