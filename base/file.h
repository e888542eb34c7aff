#pragma once

// Small files, whole. Errors name the path and what the system said. Thread-safe.

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace paceline {

// The whole file. FAILED_PRECONDITION: larger than `limit_bytes`. INVALID_ARGUMENT: a folder. Else as
// errno_status(): RESOURCE_EXHAUSTED is the machine's shortage, never the file's size.
absl::StatusOr<std::string> read_file(const std::string& path, std::size_t limit_bytes);

// Writes a temporary file beside `path`, syncs it, renames it over `path`, and syncs the folder: after a
// crash at any moment `path` holds the old content or the new one. On an error the temporary file is removed.
absl::Status write_file_atomically(const std::string& path, std::string_view content);

// What a user named: a regular file is written as above, where a link leads to it in its place; a device or a
// pipe gets the content and stays what it is. INVALID_ARGUMENT: a folder.
absl::Status write_named_file(const std::string& path, std::string_view content);

// An errno as a status: ENOENT/ENOTDIR -> NOT_FOUND, EACCES/EPERM/EROFS -> PERMISSION_DENIED, ENOSPC/EDQUOT/
// EMFILE/ENFILE/ENOMEM/ENOBUFS/EFBIG -> RESOURCE_EXHAUSTED, EEXIST -> ALREADY_EXISTS, others UNAVAILABLE. The
// message is `what: strerror`.
absl::Status errno_status(int error, std::string_view what);

}  // namespace paceline
