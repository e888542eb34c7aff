#pragma once

// The JSON of a job's series (docs/dashboard-api.md). Pure.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/job_series.h"

namespace paceline::dashboard {

inline constexpr std::size_t kMostPoints = 4096, kMostColumns = 2048;  // that an answer has

// `samples_per_step`: of all members together, where that is known.
std::string series_json(const JobSeries& series, std::size_t points, std::optional<double> samples_per_step);

// `members`: status.members of the job's object, which tell where each is. `parts`: which of kParts.
std::string heat_map_json(const JobSeries& series, Step from, Step to, std::size_t columns,
                          std::span<const std::string_view> parts, const kube::Json& members);

// "step,wait": those of kParts; empty: all. INVALID_ARGUMENT names one that is none.
absl::StatusOr<std::vector<std::string_view>> parts_named(std::string_view names);

}  // namespace paceline::dashboard
