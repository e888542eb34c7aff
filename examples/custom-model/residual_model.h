#pragma once

// A small residual network: x -> dense -> blocks of h + dense(gelu(dense(layer_norm(h)))) -> two classes.

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/model/model.h"

namespace moons {

// Parameters: width (default 32), blocks (2).
absl::StatusOr<std::unique_ptr<paceline::model::Model>> make_residual_model(
    const paceline::model::Parameters& parameters);

}  // namespace moons
