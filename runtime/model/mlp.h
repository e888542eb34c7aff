#pragma once

// Fully connected layers over the flattened sample.

#include <memory>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/model/model.h"

namespace paceline::model {

// INVALID_ARGUMENT for a width below 1 or fewer than 2 classes.
absl::StatusOr<std::unique_ptr<Model>> make_mlp(const v1::MlpSpec& spec);

}  // namespace paceline::model
