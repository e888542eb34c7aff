#pragma once

// How many threads a kernel gets: functions of sizes alone.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace paceline::cuda {

// Blocks of `threads` each, `columns` by `rows` of them.
struct LaunchShape {
  std::uint32_t columns = 1;
  std::uint32_t rows = 1;
  std::uint32_t threads = 32;

  bool operator==(const LaunchShape&) const = default;
};

// Enough blocks that each thread has one piece, and no more than keep the GPU busy: threads then go on in
// strides. At least one block.
LaunchShape strided_shape(std::size_t pieces, std::uint32_t threads, int multiprocessors);

// Blocks that each sum up one part of `n` elements.
constexpr std::uint32_t parts_of(std::size_t n) {
  constexpr std::size_t kElementsOfPart = 4096, kMostParts = 1024;
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>((n + kElementsOfPart - 1) / kElementsOfPart, 1, kMostParts));
}

// Elements that one access of 16 bytes moves.
constexpr std::size_t wide_elements(DType dtype) {
  return 16 / dtype_bytes(dtype);
}
// Whether rows of so many elements are whole accesses, so that every row begins at one.
constexpr bool whole_vectors(DType dtype, std::size_t elements) {
  return elements % wide_elements(dtype) == 0;
}

}  // namespace paceline::cuda
