#include "base/rng.h"

#include <cmath>

#include "base/check.h"

namespace paceline {

namespace {
__extension__ using Wide = unsigned __int128;
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
}  // namespace

std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

Rng::Rng(std::uint64_t seed, std::uint64_t stream) : key_(mix64(seed + kGolden) ^ mix64(~stream * kGolden)) {}

std::uint64_t Rng::next_u64() {
  return mix64(key_ + ++counter_ * kGolden);
}

std::uint64_t Rng::below(std::uint64_t bound) {
  PL_CHECK(bound > 0, "a bound of zero has no values below it");
  // Lemire's multiply-and-reject method.
  Wide product = static_cast<Wide>(next_u64()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = -bound % bound;
    while (static_cast<std::uint64_t>(product) < threshold) {
      product = static_cast<Wide>(next_u64()) * bound;
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

float Rng::uniform() {
  return static_cast<float>(next_u64() >> 40) * 0x1.0p-24f;
}

float Rng::normal() {
  const float u = 1.0f - uniform();  // (0, 1]: its logarithm is finite
  const float v = uniform();
  return std::sqrt(-2.0f * std::log(u)) * std::cos(6.28318530717958647692f * v);
}

}  // namespace paceline
