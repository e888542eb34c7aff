#pragma once

// Jobs are told to Prometheus (docs/metrics.md): sums over all of them, and for those that have not ended
// series of their own and of their members. One that failed has a series for an hour more, for an alert. The
// page is made anew for each scrape, so that a job's series go with it. Names are bounded by MetricsLimits:
// jobs in the order of their keys, members of a job all or none; what is left out is counted. Pure.
//
// Labels are job_namespace and job_name, because Prometheus has a job and often a namespace of its own.

#include <memory>
#include <string>
#include <vector>

#include "controller/bin/config.h"
#include "controller/reconcile/job_snapshot.h"

namespace paceline::controller {

using Snapshots = std::vector<std::shared_ptr<const reconcile::JobSnapshot>>;

std::string job_metrics(const Snapshots& jobs, const MetricsLimits& limits, WallTime now);

}  // namespace paceline::controller
