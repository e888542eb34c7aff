#pragma once

// What the kernels' tests share: every level of this machine, random vectors, comparison with an oracle in
// double.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::tensor::cpu {

using Floats = std::vector<float>;

inline std::vector<const Kernels*> levels() {
  std::vector<const Kernels*> tables;
  for (SimdLevel level : {SimdLevel::kPortable, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    if (const Kernels* table = kernels_for(level)) tables.push_back(table);
  }
  return tables;
}

inline Floats random_floats(Rng& rng, std::size_t n, float deviation = 1) {
  Floats x(n);
  for (float& v : x) v = deviation * rng.normal();
  return x;
}

// True where |value - expected| <= tolerance * max(1, |expected|); never for NaN.
inline bool near(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

inline void expect_near(const Floats& values, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_TRUE(near(values[i], expected[i], tolerance))
        << "element " << i << ": " << values[i] << ", expected " << expected[i];
  }
}

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Runs `body(table)` -> Floats at every level; the SIMD levels must agree bit by bit, and each level with
// itself.
template <typename Body>
void at_every_level(Body body) {
  Floats fused;
  for (const Kernels* table : levels()) {
    SCOPED_TRACE(simd_level_name(table->level));
    const Floats result = body(*table);
    ASSERT_TRUE(same_bits(result, body(*table))) << "differs from run to run";
    if (table->level == SimdLevel::kPortable) continue;
    ASSERT_TRUE(fused.empty() || same_bits(result, fused)) << "differs from the level below";
    fused = result;
  }
}

}  // namespace paceline::tensor::cpu
