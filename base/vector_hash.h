#pragma once

// A 64-bit hash of fp32 vectors that any number of threads make side by side, on the host and in kernels: the
// sum over blocks and lanes of what each has mixed. Not for secrets. Pure; the same on all little-endian
// machines.
//
// A vector is cut into blocks of 2048 floats, 1024 words of 64 bits, the last one filled with zeros. Lane l
// of a block turns words l, l + 32, l + 64, ... into its state (as a lane of xxHash64 does), and gives it to
// the sum, mixed with the numbers of lane and block. The hash is the sum, mixed with the vector's length.

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

std::uint64_t vector_hash(std::span<const float> vector);

// The parts of it, for kernels.
namespace block_hash {

inline constexpr std::size_t kFloats = 2048;  // of a block
inline constexpr int kLanes = 32;
inline constexpr int kRounds = 32;  // words of a lane

inline constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87U;
inline constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FU;

constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

constexpr std::uint64_t begin(unsigned lane) {
  return kPrime1 + lane;
}
constexpr std::uint64_t turn(std::uint64_t state, std::uint64_t word) {
  const std::uint64_t sum = state + word * kPrime2;
  return (sum << 31U | sum >> 33U) * kPrime1;
}
// What a lane gives to the sum.
constexpr std::uint64_t lane(std::uint64_t state, unsigned lane, std::uint64_t block) {
  return mix(state ^ mix(block * kLanes + lane + 1));
}
constexpr std::uint64_t end(std::uint64_t sum, std::uint64_t bytes) {
  return mix(sum ^ mix(bytes * kPrime2));
}

}  // namespace block_hash

}  // namespace paceline
