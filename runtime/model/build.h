#pragma once

// The models that a TrainingJob can name.

#include <memory>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/model/model.h"

namespace paceline::model {

// Custom models by name, as a user's program registers them (docs/custom-model.md).
using ModelRegistry = std::map<std::string, ModelFactory>;

// INVALID_ARGUMENT for sizes that make no model, NOT_FOUND for a custom model that is not in `registry` (the
// message lists those that are).
absl::StatusOr<std::unique_ptr<Model>> make_model(const v1::ModelSpec& spec, const ModelRegistry& registry);

}  // namespace paceline::model
