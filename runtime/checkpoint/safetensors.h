#pragma once

// The safetensors format (https://github.com/huggingface/safetensors), as bytes. Pure.
//
//   u64 little-endian: length N of the header
//   N bytes of JSON: {"__metadata__": {text: text}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets":
//   [begin, end]}, ...},
//                    padded with spaces so that the data begins at a multiple of 8
//   the data: row-major, little-endian, offsets relative to its begin, tensors next to each other without
//   holes or overlaps
//
// Tensors keep the order in which they are given. Reading accepts any order of the header's entries and
// refuses what the format forbids.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/dtype.h"

namespace paceline::checkpoint {

inline constexpr std::uint64_t kMaxHeaderBytes = 16 * 1024 * 1024;  // about 100,000 tensors
inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::size_t kMaxTensors = 100'000;
inline constexpr std::size_t kMaxTensorRank = 16;

using Metadata = std::map<std::string, std::string>;

// A tensor whose bytes lie elsewhere. `data` has product(dims) elements; no dims: one element.
struct TensorView {
  std::string name;  // unique, not "__metadata__"
  DType dtype = DType::kF32;
  std::vector<std::int64_t> dims;
  std::span<const std::byte> data;
};

// The elements of `values` as a tensor's bytes.
template <typename T>
TensorView tensor_view(std::string name, DType dtype, std::vector<std::int64_t> dims,
                       std::span<const T> values) {
  return {std::move(name), dtype, std::move(dims), std::as_bytes(values)};
}

// Where a tensor lies in a file's data.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0;  // relative to the begin of the data
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // by their offset
  Metadata metadata;
  std::uint64_t data_begin = 0;  // byte of the file at which the data begins
};

// A tensor whose bytes come later: of a file that is written piece by piece.
struct TensorShape {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> dims;
};

// Everything before the data: length and JSON. The file is this, then each tensor's bytes in turn.
// INVALID_ARGUMENT: a name twice or reserved or not UTF-8, negative dims, or data that isn't as long as dims
// and dtype say.
absl::StatusOr<std::string> encode_header(std::span<const TensorView> tensors, const Metadata& metadata);
absl::StatusOr<std::string> encode_header_of(std::span<const TensorShape> tensors, const Metadata& metadata);

// Reads the header from the begin of a file of `file_bytes` bytes; `begin` holds at least 8 + N of them, or
// the whole file. DATA_LOSS with the byte or the tensor's name: a length beyond the limits or the file, bad
// JSON, names twice, offsets that overlap, leave holes, or don't match dtype and shape, data that ends before
// or after the last tensor. UNIMPLEMENTED: a dtype that Paceline lacks.
absl::StatusOr<SafetensorsHeader> parse_header(std::span<const std::byte> begin, std::uint64_t file_bytes);

}  // namespace paceline::checkpoint
