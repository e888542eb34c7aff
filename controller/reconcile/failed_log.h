#pragma once

// The log of the pod that a job's end, or its restart, is due to: whether to ask for it, and what of it goes
// into the status' message. Pure.

#include <string>

#include "controller/plan/observed.h"

namespace paceline::reconcile {

// A pod's node is asked for its log, and one that is cut off lets everybody wait: not where the cluster says
// that the node does not answer, nor where its pod ran when the member fell silent, which may be the node's
// doing before the cluster knows. A log on this machine is there, whatever became of its process. `fault` may
// be null.
bool may_have_log(const api::Fault* fault, const cluster::Pod& pod);

// No escape sequences, no endless lines, and no lines that the fault has already: where the kubelet takes a
// container's last lines for its last words, both have them. `fault` may be null.
std::string lines_to_tell(const std::string& log, const api::Fault* fault);

}  // namespace paceline::reconcile
