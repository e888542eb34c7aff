#pragma once

// TrainingJob to the message that members receive. Pure.

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "controller/api/types.h"
#include "proto/paceline/v1/training.pb.h"

namespace paceline::api {

// Where a run's files are; absolute.
struct RunPaths {
  // The folder of the job's file: relative paths are relative to it. Empty: to each member's own working
  // folder.
  std::string base_folder;
  std::string checkpoint_directory;  // used where spec.checkpoint.location is empty
  std::string model_directory;       // the final model goes here
  bool resume = false;
};

// REQUIRES: a job without errors (parse.h). INVALID_ARGUMENT where base_folder is relative.
absl::StatusOr<v1::TrainingSpec> make_training_spec(const TrainingJob& job, const RunPaths& paths);

// `path` made absolute under `base`, "." and ".." removed as text (links are not followed). A relative one
// stays as it is where `base` is empty.
std::string resolve_path(std::string_view base, std::string_view path);

// The path in a location: a path as it stands, or file:///path (percent-encoding is decoded).
// INVALID_ARGUMENT for other schemes, for file://host/..., and for an empty path.
absl::StatusOr<std::string> location_path(std::string_view location);

}  // namespace paceline::api
