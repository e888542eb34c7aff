#pragma once

// A data file's content, whole: memory-mapped, or, where it begins with gzip's magic number, inflated into
// memory. Immutable; movable; any number of threads may read. Keep it alive while its bytes are used.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace paceline::data {

inline constexpr std::uint64_t kMaxInflatedBytes = std::uint64_t{64} << 30;  // of one gzipped file

class InputFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT (a folder, a damaged gzip stream; with the byte),
  // RESOURCE_EXHAUSTED (more than `inflated_limit` bytes, or no memory). Memory is taken as the stream yields
  // bytes, at most 1,032 for each of the file's.
  static absl::StatusOr<std::shared_ptr<const InputFile>> open(
      const std::string& path, std::uint64_t inflated_limit = kMaxInflatedBytes);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit InputFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::span<const std::byte> bytes_;
  std::span<std::byte> mapping_;  // unmapped at the end, where not empty
  std::unique_ptr<std::byte[]> inflated_;
};

}  // namespace paceline::data
