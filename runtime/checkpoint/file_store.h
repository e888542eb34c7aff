#pragma once

// The few operations on files that checkpoints are made of, so that tests can crash at any one of them. Paths
// use '/'. What isn't synced may be lost or torn by a crash: a file's content until its write_file() returned
// (it syncs), a name (created, renamed, removed) until sync_folder() of its folder returned. Implementations
// are thread-safe for different paths.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace paceline::checkpoint {

class FileStore {
 public:
  virtual ~FileStore() = default;

  // Creates folder `path` and those above it, and syncs the folders that got a new name; OK where it exists.
  virtual absl::Status make_folder(const std::string& path) = 0;
  // Creates or replaces a file with the pieces, one after the other, and syncs its content.
  // RESOURCE_EXHAUSTED: the disk is full.
  virtual absl::Status write_file(const std::string& path,
                                  std::span<const std::span<const std::byte>> pieces) = 0;
  virtual absl::Status sync_folder(const std::string& path) = 0;
  // Atomic. A file replaces a file; a folder must not exist under the new name.
  virtual absl::Status rename(const std::string& from, const std::string& to) = 0;
  // A file, or a folder with all that is in it. OK where there is none.
  virtual absl::Status remove(const std::string& path) = 0;
  // Names in a folder, sorted. NOT_FOUND.
  virtual absl::StatusOr<std::vector<std::string>> list(const std::string& path) const = 0;
  // NOT_FOUND; RESOURCE_EXHAUSTED where it has more than `limit` bytes, before memory is taken.
  virtual absl::StatusOr<std::vector<std::byte>> read_file(const std::string& path,
                                                           std::uint64_t limit) const = 0;
};

// Files of this machine.
std::unique_ptr<FileStore> make_directory_store();

}  // namespace paceline::checkpoint
