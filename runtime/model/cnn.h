#pragma once

// Blocks of convolution, activation and 2x2 max pooling, then fully connected layers.

#include <memory>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/model/model.h"

namespace paceline::model {

// INVALID_ARGUMENT for no channels, a number below 1, an even kernel, or fewer than 2 classes.
absl::StatusOr<std::unique_ptr<Model>> make_cnn(const v1::CnnSpec& spec);

}  // namespace paceline::model
