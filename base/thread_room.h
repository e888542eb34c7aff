#pragma once

// Whether the system lets us start the threads that we will need. Libraries that can't start theirs do not
// all say so: gRPC goes on without, and then waits for them at its end, for good. So what starts many asks
// first.

#include <string>

#include "absl/status/status.h"

namespace paceline {

// How many threads gRPC 1.51 starts in a process that serves or calls, by the machine's processors: of its
// event engine, its completion queue, its timers and its executors.
int grpc_threads();

// RESOURCE_EXHAUSTED where this process can't start `own` more threads and, at the same time, other processes
// of its user `others` (processes count as threads): names the limits that there are and what is in use.
// Starts them all, at most kMostTried, and lets them end; others may still take the room before it is used.
absl::Status room_for_threads(int own, int others);
inline constexpr int kMostTried = 1024;

// What limits the number of threads of this process, with what is in use, in words. `root`: of proc and sys.
std::string thread_limits(const std::string& root);

}  // namespace paceline
