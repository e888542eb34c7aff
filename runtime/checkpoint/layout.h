#pragma once

// The names in a folder of checkpoints (docs/checkpoints.md).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_store.h"

namespace paceline::checkpoint {

inline constexpr char kStateName[] = "state.safetensors";
inline constexpr char kManifestName[] = "manifest.json";
inline constexpr char kSavingName[] = ".saving";
inline constexpr char kReplacedName[] = ".replaced";
inline constexpr char kRemovedName[] = ".removed";

// "step-000000123"
std::string checkpoint_name(std::int64_t step);
// The step of a checkpoint's folder name, -1 for other names.
std::int64_t step_of(std::string_view name);
// Names of the checkpoints in a folder, oldest first; none where there is no folder.
absl::StatusOr<std::vector<std::string>> checkpoint_names(const FileStore& files, const std::string& folder);
// The folder that a file is in.
std::string folder_of(const std::string& path);

}  // namespace paceline::checkpoint
