#pragma once

// Whole safetensors files: a job's final model. Thread-safe for different paths.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/checkpoint/file_store.h"
#include "runtime/checkpoint/safetensors.h"

namespace paceline::checkpoint {

// The final model's name in its folder.
inline constexpr char kModelFile[] = "model.safetensors";

// Writes a safetensors file atomically: after a crash `path` holds the old content or the new one. Folders
// above it are made.
absl::Status write_safetensors(FileStore& files, const std::string& path, std::span<const TensorView> tensors,
                               const Metadata& metadata);

// The final model: one tensor per parameter, F32 or BF16. The same, on this machine's files.
absl::Status write_model(const std::string& path, std::span<const TensorView> tensors,
                         const Metadata& metadata);

// A whole safetensors file: the tensors point into `bytes`.
struct LoadedTensors {
  std::vector<TensorView> tensors;
  Metadata metadata;
  std::vector<std::byte> bytes;
};
absl::StatusOr<LoadedTensors> read_safetensors(const FileStore& files, const std::string& path);
absl::StatusOr<LoadedTensors> read_model(const std::string& path);

// Of these bytes, which are a whole file's. DATA_LOSS, UNIMPLEMENTED: parse_header().
absl::StatusOr<LoadedTensors> parse_safetensors(std::vector<std::byte> bytes);

// What a file is, one piece after the other; `header` is the memory of the first.
using Pieces = std::vector<std::span<const std::byte>>;
absl::StatusOr<Pieces> pieces_of(std::span<const TensorView> tensors, const Metadata& metadata,
                                 std::string& header);
inline std::span<const std::byte> text_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline constexpr std::uint64_t kMaxStateBytes = std::uint64_t{1} << 40;

}  // namespace paceline::checkpoint
