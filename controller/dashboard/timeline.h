#pragma once

// The events of a job, in order: from its events, what its status says of them in figures, and its
// evaluations. Pure.

#include <cstddef>
#include <vector>

#include "controller/cluster/kube/json.h"
#include "controller/dashboard/job_series.h"
#include "controller/jobs/job_source.h"

namespace paceline::dashboard {

inline constexpr std::size_t kMostItems = 2000;  // of a timeline, the newest

// {"items": [...]}, the oldest first. Seconds count from the job's creation, as those of status_samples.h.
kube::Json timeline_json(const kube::Json& object, const std::vector<jobs::EventView>& events,
                         const std::vector<EvaluationPoint>& evaluations);

// {"events": [...]}, the newest last.
kube::Json events_json(const std::vector<jobs::EventView>& events);

}  // namespace paceline::dashboard
