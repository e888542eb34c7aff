#pragma once

// Messages of a fixed length that end with the CRC-32C of all before it, made of any bytes: what mutations
// alone would never find.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/crc32c.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

// The first `Size` bytes; zeros where there are fewer.
template <std::size_t Size>
std::array<std::byte, Size> padded(Input input) {
  std::array<std::byte, Size> bytes{};
  std::copy_n(input.begin(), std::min(input.size(), Size), bytes.begin());
  return bytes;
}

// The same with the first `kept` bytes of `good`, its magic and version, and a right checksum.
template <std::size_t Size>
std::array<std::byte, Size> mended(Input input, const std::array<std::byte, Size>& good, std::size_t kept) {
  std::array<std::byte, Size> bytes = padded<Size>(input);
  std::copy_n(good.begin(), kept, bytes.begin());
  const std::uint32_t checksum = crc32c(std::span(bytes).template first<Size - sizeof(std::uint32_t)>());
  std::memcpy(bytes.data() + Size - sizeof(checksum), &checksum, sizeof(checksum));
  return bytes;
}

}  // namespace paceline::fuzz
