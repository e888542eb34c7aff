#include "base/simd_level.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(SimdLevel, HasNamesAndAnOrder) {
  EXPECT_STREQ(simd_level_name(SimdLevel::kPortable), "portable");
  EXPECT_STREQ(simd_level_name(SimdLevel::kAvx2), "AVX2");
  EXPECT_STREQ(simd_level_name(SimdLevel::kAvx512), "AVX-512");
  EXPECT_LT(SimdLevel::kPortable, SimdLevel::kAvx2);
  EXPECT_LT(SimdLevel::kAvx2, SimdLevel::kAvx512);
}

}  // namespace
}  // namespace paceline
