#pragma once

// A diagnosis puts the coordinator's word and the cluster's together: what became of a member, and by what.
// Pure.
//
// A process's own end explains more than the stream that ended with it; what the member said of itself more
// than its exit code. A pod that somebody deleted, or that its node lost, excuses a member that fell silent.

#include <optional>
#include <span>
#include <string>

#include "controller/api/fault.h"
#include "controller/cluster/cluster.h"

namespace paceline::diagnosis {

// Two failures so close to each other may be seen in the wrong order.
inline constexpr Duration kSameMoment = std::chrono::milliseconds(250);

// A member's place, as the cluster and the job's status know it.
struct Place {
  Role role = Role::kWorker;
  int index = 0;
  std::string pod_name;               // that it wants now
  const cluster::Pod* pod = nullptr;  // null: there is none
  bool gone = false;                  // there is none by the cluster's own word
  std::optional<Step> last_step;
  bool built_in = false;  // it runs our own program, whose exit codes are known (base/process_end.h)
};

// `told`, with what the cluster knows of this place, and with the cause. Nothing told: by the pod alone,
// which has ended, is being deleted, or is gone.
api::Fault diagnose(const Place& place, std::optional<api::Fault> told = std::nullopt);

// The first that failed by itself, with the others as its victims: the one that ended first by a signal or a
// non-zero exit code. One that was told to leave (exit code 3) is never the root while there is another, nor
// is an exit with code 1 within kSameMoment of a signal: peers of one that is killed notice before the system
// tells us. REQUIRES: some; the pods of all of them have ended.
api::Fault first_failure(std::span<const Place> failed);

// Kubernetes' own reasons for ending a pod (the pod's reason, or that of its condition DisruptionTarget),
// where it was not the pod's fault. https://kubernetes.io/docs/concepts/workloads/pods/disruptions
std::optional<api::RestartCause> disruption_of(const cluster::Pod& pod);

// Why the member in this pod fell silent, where it was not its own fault: a disruption, or its node.
std::optional<api::RestartCause> silenced_by(const cluster::Pod& pod);

// Its heartbeats, its stream or its links are missed, and nobody knows an end of its process.
bool fell_silent(const api::Fault& fault);

// The cluster's own words for a pod's end, where they say more than that it ended: "OOMKilled".
std::string words_of(const cluster::Pod& pod);

}  // namespace paceline::diagnosis
