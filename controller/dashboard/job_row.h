#pragma once

// A job as one row of the dashboard's list: from the object as JobSource has it to the API's Row
// (docs/dashboard-api.md). What is not known is left out. Pure.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/cluster/kube/json.h"

namespace paceline::dashboard {

// The object's status may have `run`: that of a run of this machine.
kube::Json job_row(const kube::Json& object, WallTime now);

// Pending, Starting, Running, Suspended, Restarting, Succeeded, Failed, Stopped, Unknown.
std::string phase_of(const kube::Json& object);
// It has succeeded, failed or been stopped.
bool has_ended(const kube::Json& object);

// Whether its checkpoints outlive its pods, so that it goes on from them when it is resumed. Those of a run
// of this machine do.
bool keeps_checkpoints(const kube::Json& object);

// Advice for the pod that does not start, in the words of `paceline describe`; empty: all start, or none is
// known.
std::vector<std::string> pod_hints(const kube::Json& object);

// "worker-1", of what has a role and an index.
std::string member_name(const kube::Json& of);

// All members together; of parameter servers only where the run tells how many it has taken.
std::optional<double> samples_per_step(const kube::Json& object);

}  // namespace paceline::dashboard
