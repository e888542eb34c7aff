#pragma once

// A data set over arrays in memory or mapped files: rows of one element type, several parts one after the
// other, a label for each row. Elements keep the type that they have in the file and become floats when they
// are fetched: x -> x * factor + offset.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"
#include "runtime/data/inspection.h"

namespace paceline::data {

enum class ElementType : std::uint8_t { kU8, kI32, kI64, kF32, kF64 };
std::int64_t element_bytes(ElementType type);
// f(a number of that type).
template <typename F>
auto visit(ElementType type, F f) {
  switch (type) {
    case ElementType::kU8:
      return f(std::uint8_t{});
    case ElementType::kI32:
      return f(std::int32_t{});
    case ElementType::kI64:
      return f(std::int64_t{});
    case ElementType::kF32:
      return f(float{});
    case ElementType::kF64:
      break;
  }
  return f(double{});
}

// Rows in a row: row i begins at data + i * stride.
struct ArrayPart {
  std::shared_ptr<const void> owner;  // keeps `data` alive
  const std::byte* data = nullptr;    // of any alignment, little-endian
  std::int64_t stride = 0;            // bytes from row to row
  std::int64_t rows = 0;
  std::string file = {};  // whose rows they are, for messages
};

struct ArrayRows {
  ElementType type = ElementType::kU8;
  std::vector<std::int64_t> dims;  // of one row
  std::vector<ArrayPart> parts;
  std::int64_t rows() const;
};

// x -> x * factor + offset. From (x * scale - mean) / deviation: factor = scale / deviation, offset = -mean /
// deviation.
struct Affine {
  float factor = 1;
  float offset = 0;
};

// Of images {channels, height, width}: each is mirrored with probability 1/2 where `flip`, and shifted by
// -crop..crop pixels in both directions, the pixels that come in being 0 before normalisation.
struct ImageAugmentation {
  bool flip = false;
  std::int64_t crop = 0;
  bool any() const { return flip || crop > 0; }
};

// fetch(): INVALID_ARGUMENT names file, sample and feature where a number isn't finite, or not after
// `affine`. REQUIRES: labels.size() == rows.rows() > 0, all labels >= 0, dims of rank 3 where augmentation is
// wanted.
std::shared_ptr<const FileDataset> make_array_dataset(ArrayRows rows, std::vector<std::int32_t> labels,
                                                      Affine affine, ImageAugmentation augmentation);

}  // namespace paceline::data
