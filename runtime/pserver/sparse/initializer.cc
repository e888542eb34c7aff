#include "runtime/pserver/sparse/initializer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/rng.h"

namespace paceline::pserver::sparse {

namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

// As base/rng.h's Rng, but inline: millions of rows are made at once.
std::uint64_t output(std::uint64_t key, std::size_t k) {
  std::uint64_t z = key + (k + 1) * kGolden;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// In [0, 1), 24 bits.
float uniform(std::uint64_t bits) {
  return static_cast<float>(bits >> 40) * 0x1.0p-24f;
}

}  // namespace

void initialize_row(const Initializer& initializer, std::uint64_t seed, RowId id, std::span<float> weights) {
  const std::uint64_t key = mix64(mix64(seed + kGolden) ^ (id * kGolden));
  const auto scale = static_cast<float>(initializer.scale);
  switch (initializer.kind) {
    case Initializer::Kind::kZero:
      std::fill(weights.begin(), weights.end(), 0.0f);
      return;
    case Initializer::Kind::kUniform:
      for (std::size_t k = 0; k < weights.size(); ++k) {
        weights[k] = (2 * uniform(output(key, k)) - 1) * scale;
      }
      return;
    case Initializer::Kind::kNormal:
      for (std::size_t k = 0; k < weights.size(); k += 2) {
        const float radius = std::sqrt(-2 * std::log(1 - uniform(output(key, k))));
        const float angle = 2 * std::numbers::pi_v<float> * uniform(output(key, k + 1));
        weights[k] = radius * std::cos(angle) * scale;
        if (k + 1 < weights.size()) weights[k + 1] = radius * std::sin(angle) * scale;
      }
      return;
  }
}

}  // namespace paceline::pserver::sparse
