#pragma once

// This machine as a cluster. A pod is a process group: its first process is the pod's command, its working
// directory is <root>/pods/<pod>/, its stdout and stderr go to <root>/logs/<pod>.log (appended, never
// rotated: a pod's log is bounded by the disk only). Events go to <root>/events.jsonl, one object per line:
//   {"time": RFC 3339, "namespace": .., "job": .., "type": "Normal"|"Warning", "reason": .., "message": ..}
//
// Each pod has a supervisor, the program paceline-pod (cluster/local/pod_main.cc): it starts the command in a
// process group of its own, tells us by a socket how it went, ends the group when we say so, and kills all
// descendants (those that left the group, too) when the command ends or when the socket closes, that is, when
// this process died, however it died. So nothing outlives us.
//
// Thread-safe. One thread of its own waits for the supervisors (epoll; no polling) and calls the watcher.
// Bounds: kMaxPods; two file descriptors per running pod, none for one that has ended.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "controller/cluster/cluster.h"

namespace paceline::cluster {

inline constexpr int kMaxPods = 4096;  // in the list, ended ones included
inline constexpr Duration kShutDownLimit = std::chrono::seconds(5);
inline constexpr std::size_t kTailLimitBytes = 1 << 20;  // tail_log reads no more than this

struct LocalClusterOptions {
  std::string root;                        // absolute; created if missing
  std::string pod_program;                 // absolute path of paceline-pod
  std::map<std::string, std::string> env;  // added to this process's environment, for every pod
  // Hears of every event that is recorded, on the thread that records it.
  std::function<void(const Event&)> on_event = nullptr;
};

class LocalCluster : public Cluster {
 public:
  // The errors of making the folders; NOT_FOUND where pod_program can't be executed. The clock must outlive
  // the cluster. Destruction kills all pods and reaps them, within kShutDownLimit.
  static absl::StatusOr<std::unique_ptr<LocalCluster>> make(LocalClusterOptions options, const Clock& clock);
};

}  // namespace paceline::cluster
