#pragma once

// Seeded randomness: a counter-based generator, so that value k of stream s of a seed is the same on every
// machine and in every order of calls. Pure; a value type; not for secrets.
//
// Algorithm: SplitMix64 (Steele, Lea, Flood 2014) as a keyed counter: output k is mix(key + k * golden).

#include <cstdint>

namespace paceline {

class Rng {
 public:
  // Streams of one seed are independent: use one for each purpose (weights, shuffling, augmentation, ...).
  Rng(std::uint64_t seed, std::uint64_t stream);

  std::uint64_t next_u64();
  // Uniform in [0, bound), without bias. REQUIRES: bound > 0.
  std::uint64_t below(std::uint64_t bound);
  // Uniform in [0, 1), 24 bits.
  float uniform();
  // Standard normal (Box-Muller on two uniforms).
  float normal();

  // Position in the stream, to save and to restore.
  std::uint64_t position() const { return counter_; }
  void seek(std::uint64_t position) { counter_ = position; }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

// The mixing function itself: a good 64-bit hash of a 64-bit value.
std::uint64_t mix64(std::uint64_t value);

}  // namespace paceline
