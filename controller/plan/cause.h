#pragma once

// What ended a pod, as far as restarts are concerned: whose fault it was, and whether another attempt may
// help. Pure.

#include <optional>

#include "controller/plan/blame.h"

namespace paceline::plan {

// Kubernetes' own reasons for ending a pod (the pod's reason, or that of its condition DisruptionTarget),
// where it was not the pod's fault. https://kubernetes.io/docs/concepts/workloads/pods/disruptions
std::optional<api::RestartCause> disruption_of(const cluster::Pod& pod);

// Whose fault it was that the member in this pod fell silent, where it was not its own: that of a disruption,
// or of its node.
std::optional<api::RestartCause> silenced_by(const cluster::Pod& pod);

api::RestartCause cause_of(const Blame& blame);

// By the restart policy of the lost member's role. ExitCode: 1 to 127 is permanent; 128 and more, signals,
// silence and disruptions are not.
bool may_restart(api::RestartPolicy policy, const Blame& blame);

}  // namespace paceline::plan
