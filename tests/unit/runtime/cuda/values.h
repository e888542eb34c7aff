#pragma once

// Values of tests in both types of kernels, and what they are compared with: an oracle in double. A result
// may be off by the arithmetic in fp32, `tolerance` times the larger of 1 and the value (and of `scale`,
// where what was summed is larger), and in bf16 by the one rounding to 8 bits at its end.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/dtype.h"
#include "base/rng.h"

namespace paceline::cuda {

using Doubles = std::vector<double>;

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
inline constexpr DType kTypeOf = DType::kF32;
template <>
inline constexpr DType kTypeOf<BFloat16> = DType::kBF16;

// Of random values that are exact in T.
template <typename T>
std::vector<T> random_values(Rng& rng, std::size_t n, float deviation = 1) {
  std::vector<T> values;
  values.reserve(n);
  for (std::size_t i = 0; i < n; ++i) values.emplace_back(T(deviation * rng.normal()));
  return values;
}

template <typename T>
Doubles doubles(const std::vector<T>& values) {
  Doubles result;
  result.reserve(values.size());
  for (const T& value : values) result.push_back(static_cast<float>(value));
  return result;
}

template <typename T>
void expect_near(const std::vector<T>& values, const Doubles& expected, double tolerance, double scale = 1) {
  ASSERT_EQ(values.size(), expected.size());
  const double rounding = kTypeOf<T> == DType::kBF16 ? 1.0 / 256 : 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(static_cast<float>(values[i]));
    const double bound =
        tolerance * std::max({1.0, scale, std::abs(expected[i])}) + rounding * std::abs(expected[i]);
    ASSERT_TRUE(std::abs(value - expected[i]) <= bound)
        << "element " << i << " of " << values.size() << ": " << value << ", expected " << expected[i];
  }
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace paceline::cuda
