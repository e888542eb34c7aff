#pragma once

// The job's members as controller/diagnosis sees them, from what the planner observes. Pure.

#include <optional>

#include "controller/diagnosis/diagnosis.h"
#include "controller/plan/observed.h"

namespace paceline::plan {

diagnosis::Place place_of(const Observed& observed, Role role, int index);

// The coordinator's verdict, with what the cluster knows. REQUIRES: observed.report->fault.
api::Fault fault_by_verdict(const Observed& observed);

// The first failed pod of the ring; nothing where none has failed. A pod that is being deleted ends as it was
// told to: it counts only if it failed before. One whose work was done when it was evicted or disrupted, or
// whose sidecar failed then, does not count (has_finished).
std::optional<api::Fault> fault_by_pods(const Observed& observed);

// This pod, whichever others failed.
api::Fault fault_of(const Observed& observed, const cluster::Pod& pod);

// Our own program ended as one does that is told to leave: another member may be the reason.
bool left_as_told(const Observed& observed, const api::Fault& fault);

}  // namespace paceline::plan
