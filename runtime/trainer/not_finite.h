#pragma once

// The error for a loss that is not finite.

#include <string>

#include "absl/status/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/prefetcher.h"

namespace paceline::trainer {

// OUT_OF_RANGE, with `what` as in "step 3: the loss". Before the first update (`updated` is false) the
// learning rate can't be the cause, so the error names the largest number of this member's `batch` and the
// place of its sample in `train`.
absl::Status not_finite(const std::string& what, double loss, bool updated, const data::Dataset& train,
                        const data::Batch& batch);

}  // namespace paceline::trainer
