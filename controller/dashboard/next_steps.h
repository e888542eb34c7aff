#pragma once

// The next decisions about a job, as far as its status tells: when it begins again, what is done about slow
// members, how many restarts are left (of a spec that can be run). Pure.

#include "base/clock.h"
#include "controller/cluster/kube/json.h"

namespace paceline::dashboard {

// {"decisions": [{"text", "in": seconds, or null}]}
kube::Json next_steps_json(const kube::Json& object, WallTime now);

}  // namespace paceline::dashboard
