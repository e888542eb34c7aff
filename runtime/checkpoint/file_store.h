#pragma once

// The few operations on files that checkpoints are made of, so that tests can crash at any one of them. Paths
// use '/'. What isn't synced may be lost or torn by a crash: a file's content until its write_file() returned
// (it syncs) or its writer's finish() did, a name (created, renamed, removed) until sync_folder() of its
// folder returned. Implementations are thread-safe for different paths.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace paceline::checkpoint {

// A file that is written piece by piece. What was appended may be lost until finish() returned, and all of it
// where that never does. One thread.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  // RESOURCE_EXHAUSTED: the disk is full.
  virtual absl::Status append(std::span<const std::byte> bytes) = 0;
  // Syncs the content. Nothing is appended after it.
  virtual absl::Status finish() = 0;
};

// A file that is read piece by piece, from its begin. It stays readable when its name goes. One thread.
class FileReader {
 public:
  virtual ~FileReader() = default;
  // The next bytes; fewer than `out` has room for only at the file's end.
  virtual absl::StatusOr<std::size_t> read(std::span<std::byte> out) = 0;
  // Bytes of the whole file when it was opened.
  virtual std::uint64_t size() const = 0;
};

class FileStore {
 public:
  virtual ~FileStore() = default;

  // Creates folder `path` and those above it, and syncs the folders that got a new name; OK where it exists.
  virtual absl::Status make_folder(const std::string& path) = 0;
  // Creates or replaces a file with the pieces, one after the other, and syncs its content.
  // RESOURCE_EXHAUSTED: the disk is full.
  virtual absl::Status write_file(const std::string& path,
                                  std::span<const std::span<const std::byte>> pieces) = 0;
  // The same piece by piece, for what is larger than memory. The writer does not outlive the store.
  virtual absl::StatusOr<std::unique_ptr<FileWriter>> create_file(const std::string& path) = 0;
  virtual absl::Status sync_folder(const std::string& path) = 0;
  // Atomic. A file replaces a file; a folder must not exist under the new name.
  virtual absl::Status rename(const std::string& from, const std::string& to) = 0;
  // A file, or a folder with all that is in it. OK where there is none.
  virtual absl::Status remove(const std::string& path) = 0;
  // Names in a folder, sorted. NOT_FOUND; INVALID_ARGUMENT: it, or one above it, is a file, or a link that
  // leads nowhere.
  virtual absl::StatusOr<std::vector<std::string>> list(const std::string& path) const = 0;
  // NOT_FOUND; INVALID_ARGUMENT: no regular file (a pipe is not waited for); FAILED_PRECONDITION where it has
  // more than `limit` bytes, before memory is taken; RESOURCE_EXHAUSTED: no memory, no file descriptor.
  virtual absl::StatusOr<std::vector<std::byte>> read_file(const std::string& path,
                                                           std::uint64_t limit) const = 0;
  // The same piece by piece, of any size. NOT_FOUND, INVALID_ARGUMENT, RESOURCE_EXHAUSTED.
  virtual absl::StatusOr<std::unique_ptr<FileReader>> open_file(const std::string& path) const = 0;
};

// How a file's bytes [at, at + bytes) go to its disk before the file is whole: begins to write them, or, with
// `await`, returns when they are written. An error is the file's, and is not told again by its sync.
using WriteBack = std::function<absl::Status(int fd, std::uint64_t at, std::uint64_t bytes, bool await)>;
absl::Status write_back(int fd, std::uint64_t at, std::uint64_t bytes, bool await);
inline constexpr std::uint64_t kWriteBackBytes = std::uint64_t{64} << 20;

// Files of this machine. What is appended to one goes to the disk piece by piece of so many bytes, at most
// two of which are under way: appending takes as long as the disk does, and the sync at the end does not wait
// for all of a large file. One that is smaller than a piece is only synced.
std::unique_ptr<FileStore> make_directory_store(std::uint64_t piece_bytes = kWriteBackBytes,
                                                WriteBack write_back = checkpoint::write_back);

}  // namespace paceline::checkpoint
