#pragma once

// A job's series as bytes that a history keeps (CBOR, RFC 8949): coarser than what is in memory, and bounded.
// Pure.

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "controller/dashboard/job_series.h"

namespace paceline::dashboard {

inline constexpr std::size_t kRecordedPoints = 1024;    // of steps
inline constexpr std::size_t kRecordedColumns = 256;    // of the heat map
inline constexpr std::size_t kRecordedCells = 1 << 17;  // of it, all members and parts together

std::string pack_series(const JobSeries& series);

// A job that goes on adds its next steps to it. DATA_LOSS: these are no such bytes.
absl::StatusOr<JobSeries> unpack_series(std::string_view bytes);

}  // namespace paceline::dashboard
