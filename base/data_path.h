#pragma once

// A path of a job's data names a file.

#include <string>

#include "absl/status/status.h"

namespace paceline {

// INVALID_ARGUMENT, with what to do: the path is a folder. What is not there, or can't be looked at, is none.
absl::Status check_no_folder(const std::string& path);

}  // namespace paceline
