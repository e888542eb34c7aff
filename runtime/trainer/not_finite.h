#pragma once

// What to say where a loss is not finite.

#include <string>

#include "absl/status/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/prefetcher.h"

namespace paceline::trainer {

// OUT_OF_RANGE. `what`: "step 3: the loss". Before the first update (`updated` is false) no learning rate is
// to blame: the largest number of this member's `batch` is named, with its sample's place in `train`.
absl::Status not_finite(const std::string& what, double loss, bool updated, const data::Dataset& train,
                        const data::Batch& batch);

}  // namespace paceline::trainer
