#pragma once

// What LocalCluster and a pod's supervisor say to each other on a socket (SOCK_SEQPACKET, one fixed-size
// message per packet, same machine and build).
//
//   supervisor -> us   kGroup(pid), from the new process before it becomes the command, so that we know the
//   group before
//                      anything in it runs; kStarted(pid) | kStartError(errno) | kOtherVersion; after
//                      kStarted, kEnded(exit code or signal)
//   us -> supervisor   Order: SIGTERM to the group now, SIGKILL after the grace; may be repeated, the
//   earliest SIGKILL counts end of the socket  for the supervisor: we are dead, kill everything; for us:
//   nothing of the pod is left

#include <cstdint>

namespace paceline::cluster {

inline constexpr int kSupervisorSocket = 3;  // its descriptor in the supervisor

enum class NoticeKind : std::int32_t {
  kGroup = 1,
  kStarted = 2,
  kStartError = 3,
  kEnded = 4,
  kOtherVersion = 5
};
struct Notice {
  NoticeKind kind = NoticeKind::kStarted;
  std::int32_t value =
      0;  // kGroup, kStarted: pid = process group; kStartError: errno; kEnded: exit code or signal
  std::int32_t by_signal = 0;  // kEnded: whether value is a signal
};
struct Order {
  std::int64_t grace_ns = 0;
};

}  // namespace paceline::cluster
