// Four independent lanes of 64-bit words (as xxHash64 has them), each turned by a multiplication and a
// rotation, folded at the end.

#include "runtime/trainer/weights_hash.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/rng.h"

namespace paceline::trainer {

namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87u;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Fu;

std::uint64_t turn(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

}  // namespace

std::uint64_t weights_hash(std::span<const float> weights) {
  const auto bytes = std::as_bytes(weights);
  std::array<std::uint64_t, 4> lanes = {kPrime1, kPrime2, ~kPrime1, ~kPrime2};
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data() + at, 32);
    for (std::size_t l = 0; l < 4; ++l) lanes[l] = turn(lanes[l], words[l]);
  }
  std::array<std::uint64_t, 4> rest{};
  std::memcpy(rest.data(), bytes.data() + at, bytes.size() - at);
  for (std::size_t l = 0; l < 4; ++l) lanes[l] = turn(lanes[l], rest[l]);

  std::uint64_t hash = bytes.size();
  for (const std::uint64_t lane : lanes) hash = mix64(hash ^ lane);
  return hash;
}

}  // namespace paceline::trainer
