#pragma once

// The end of a file. Thread-safe.

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace paceline::cluster {

// The last `lines` lines (the last one with or without its newline), or what of them is in the last
// `limit_bytes`, and not in the first `begin`, unless the file has become shorter than that. Reads blocks
// from the end: cost is that of what is returned, whatever the file's size. Errors of opening and reading.
absl::StatusOr<std::string> tail_file(const std::string& path, int lines, std::size_t limit_bytes,
                                      std::size_t begin = 0);

}  // namespace paceline::cluster
