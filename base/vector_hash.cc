#include "base/vector_hash.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace paceline {

namespace {

constexpr std::size_t kWords = block_hash::kFloats / 2;
constexpr unsigned kSide = 8;  // lanes at a time: a cache line of words

// Of one whole block.
std::uint64_t block_sum(const std::byte* bytes, std::uint64_t block) {
  std::uint64_t sum = 0;
  for (unsigned first = 0; first < block_hash::kLanes; first += kSide) {
    std::array<std::uint64_t, kSide> states;
    for (unsigned l = 0; l < kSide; ++l) states[l] = block_hash::begin(first + l);
    for (std::size_t at = first; at < kWords; at += block_hash::kLanes) {
      std::array<std::uint64_t, kSide> words;
      std::memcpy(words.data(), bytes + at * 8, sizeof(words));
      for (unsigned l = 0; l < kSide; ++l) states[l] = block_hash::turn(states[l], words[l]);
    }
    for (unsigned l = 0; l < kSide; ++l) sum += block_hash::lane(states[l], first + l, block);
  }
  return sum;
}

}  // namespace

std::uint64_t vector_hash(std::span<const float> vector) {
  const auto bytes = std::as_bytes(vector);
  constexpr std::size_t kBytes = kWords * 8;
  std::uint64_t sum = 0;
  std::uint64_t block = 0;
  std::size_t at = 0;
  for (; at + kBytes <= bytes.size(); at += kBytes) sum += block_sum(bytes.data() + at, block++);
  if (at < bytes.size()) {
    std::array<std::byte, kBytes> last{};
    std::memcpy(last.data(), bytes.data() + at, bytes.size() - at);
    sum += block_sum(last.data(), block);
  }
  return block_hash::end(sum, bytes.size());
}

}  // namespace paceline
