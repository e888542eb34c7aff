#pragma once

// The header of a safetensors file that is read piece by piece, and then its data in the order of the file.
// No memory is taken for what a header says before the file is known to have it. One thread.

#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_store.h"
#include "runtime/checkpoint/safetensors.h"

namespace paceline::checkpoint {

// The data comes next. DATA_LOSS, UNIMPLEMENTED: parse_header(). REQUIRES: nothing of it was read.
absl::StatusOr<SafetensorsHeader> read_header(FileReader& file);

}  // namespace paceline::checkpoint
