#pragma once

// What a Kubernetes cluster allows, where that differs from a run on one machine: the same for the
// controller, which acts by it, and for `paceline explain`, which says what the controller would do. Pure.

#include "base/clock.h"
#include "controller/plan/observed.h"

namespace paceline::plan {

// How often progress alone is written to a job's status.
inline constexpr Duration kKubernetesStatusInterval = std::chrono::seconds(10);

Limits kubernetes_limits();

}  // namespace paceline::plan
