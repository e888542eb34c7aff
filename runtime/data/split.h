#pragma once

// Cuts one data set into a training and a held-out part: a seeded, disjoint, complete split that needs no
// memory. Thread-safe as the data set.

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/data/open.h"

namespace paceline::data {

// The held-out part has round(fraction * size) samples, at least one, and leaves at least one.
// INVALID_ARGUMENT: `fraction` isn't in (0, 1), or there are fewer than two samples.
absl::StatusOr<Datasets> split_dataset(std::shared_ptr<const Dataset> whole, double fraction,
                                       std::uint64_t seed);

}  // namespace paceline::data
