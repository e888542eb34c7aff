#pragma once

// Opening what has to be a regular file: a run's, a checkpoint's, a data set's. Opening a pipe waits for its
// other end, for good where there is none, so nothing here waits: what is no regular file is refused. What a
// user names on a command line may be a pipe: that is read_file()'s (base/file.h). Thread-safe.

#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace paceline {

struct RegularFile {
  UniqueFd fd;             // closed on exec
  std::uint64_t size = 0;  // in bytes, when it was opened
};

// `flags` as of open(2); what it creates has mode 0644. INVALID_ARGUMENT: a folder, pipe, socket or device,
// in words; else as errno_status().
absl::StatusOr<RegularFile> open_regular_file(const std::string& path, int flags = O_RDONLY);

// As read_file(), of a regular file.
absl::StatusOr<std::string> read_regular_file(const std::string& path, std::size_t limit_bytes);

// The end of a regular file of lines: all of it, or of a longer one the whole lines in its last
// `limit_bytes`.
absl::StatusOr<std::string> read_last_lines(const std::string& path, std::size_t limit_bytes);

// What is left of an open file. FAILED_PRECONDITION: more than `limit_bytes`; else as errno_status().
absl::StatusOr<std::string> read_open_file(int fd, const std::string& path, std::size_t limit_bytes);

}  // namespace paceline
