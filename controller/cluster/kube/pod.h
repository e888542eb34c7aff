#pragma once

// A Pod object's JSON to a slim value: what the planner needs, and what people want to hear. Pure.
//
// The trainer decides: the container named `trainer`, or the first. A pod whose trainer has ended has ended,
// whatever its sidecars do; with code 0 it has succeeded, though a sidecar fails, unless the pod was evicted
// or disrupted: its program may have ended because it was asked to.
//
// Reasons are Kubernetes' own words. Of a pod that failed, the first of: the pod's (Evicted, NodeLost,
// DeadlineExceeded, ...), why it was disrupted (PreemptionByScheduler, DeletionByTaintManager,
// EvictionByEvictionAPI, TerminationByKubelet, ...), the trainer's (OOMKilled, Error, StartError, ...), an
// init container's. Of one that does not run yet: why it can't be scheduled (Unschedulable, SchedulingGated),
// or why a container waits (ErrImagePull, ImagePullBackOff, CreateContainerConfigError, CrashLoopBackOff,
// ...).

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "controller/cluster/cluster.h"
#include "controller/cluster/kube/json.h"

namespace paceline::kube {

inline constexpr std::size_t kMaxPodMessageBytes = 512;
inline constexpr char kTrainerContainer[] = "trainer";

struct SlimPod {
  std::string key, job_key;  // namespace/name
  std::string name() const { return key.substr(key.find('/') + 1); }
  std::string uid, resource_version;
  std::string job_uid;  // of its controller; empty: it has none, or none of ours
  std::string trainer;  // the container that decides
  Role role = Role::kWorker;
  std::int32_t index = 0, attempt = 0, restarts = 0;  // restarts of all its containers
  cluster::PodPhase phase = cluster::PodPhase::kPending;
  bool ready = false, lingers = false;  // lingers: its trainer has ended, and other containers run on
  bool ended_first = false;             // before its deletion, as far as clocks agree
  bool node_not_ready = false;          // it has not ended, and the control plane has given up its node
  std::string node, avoids;             // avoids: the node that it must not come to
  std::optional<WallTime> created, deletion, started, finished;  // deletion: when its grace ends
  std::optional<std::int32_t> exit_code, signal;                 // of the trainer; at most one of them
  std::string reason, message, disruption;  // disruption: the reason of its DisruptionTarget condition
  std::string failed_init;                  // the init container that failed; empty: none
  bool operator==(const SlimPod&) const = default;
};

// Nothing where it is no pod of a job: no name, no uid, or no job-name label.
std::optional<SlimPod> slim_pod(const Json& object);

cluster::Pod to_cluster_pod(const SlimPod& pod);

// Bytes of memory that it takes, its texts included.
std::size_t memory_of(const SlimPod& pod);

// The name of the container that decides, of a Pod or of a pod template; empty where there is none.
std::string trainer_name(const Json& pod_spec);

}  // namespace paceline::kube
