#pragma once

// Two interleaved half circles with noise: points of the plane, label 0 or 1.

#include <cstdint>

#include "absl/status/statusor.h"
#include "runtime/data/open.h"

namespace moons {

// Parameters: samples (default 4000), noise (0.1). The same seed gives the same points in every member.
absl::StatusOr<paceline::data::Datasets> make_moons(const std::map<std::string, std::string>& parameters,
                                                    std::uint64_t seed);

}  // namespace moons
