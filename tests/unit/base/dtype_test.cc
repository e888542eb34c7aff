#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace paceline {
namespace {

TEST(DTypeTest, NamesRoundTrip) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
    EXPECT_GT(dtype_bytes(dtype), 0u);
  }
  EXPECT_EQ(parse_dtype("F8"), std::nullopt);
}

TEST(DTypeTest, EveryBFloat16SurvivesARoundTrip) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    BFloat16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    const float f = static_cast<float>(value);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(f))));
    } else {
      EXPECT_EQ(BFloat16(f).bits, bits);
    }
  }
}

TEST(DTypeTest, EveryFloat16SurvivesARoundTrip) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    Float16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    const float f = static_cast<float>(value);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Float16(f))));
    } else {
      EXPECT_EQ(Float16(f).bits, bits);
    }
  }
}

TEST(DTypeTest, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 0x1p-8f)), 1.0f);              // halfway: to even
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 0x1.8p-7f)), 1.0f + 0x1p-6f);  // halfway: to even, upwards
  EXPECT_EQ(static_cast<float>(Float16(1.0f + 0x1p-11f)), 1.0f);
  EXPECT_EQ(static_cast<float>(Float16(1.0f + 0x1.8p-10f)), 1.0f + 0x1p-9f);
  EXPECT_EQ(static_cast<float>(Float16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(Float16(65520.0f))));
  EXPECT_EQ(static_cast<float>(Float16(0x1p-25f)), 0.0f);  // half of the smallest subnormal
  EXPECT_EQ(static_cast<float>(Float16(0x1.8p-25f)), 0x1p-24f);
  EXPECT_TRUE(std::isinf(static_cast<float>(BFloat16(std::numeric_limits<float>::max()))));
}

}  // namespace
}  // namespace paceline
