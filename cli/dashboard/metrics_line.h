#pragma once

// A line of metrics.jsonl (docs/metrics.md) into a job's series. Pure.

#include <string_view>

#include "controller/dashboard/job_series.h"

namespace paceline::cli {

// False: it makes no sense (torn by a crash), or is of a type that is not known here; it is passed over.
bool add_metrics_line(std::string_view line, dashboard::JobSeries& series);

}  // namespace paceline::cli
