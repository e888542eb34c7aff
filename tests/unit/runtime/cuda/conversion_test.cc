#include "runtime/cuda/conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

constexpr std::size_t kConversionSizes[] = {0, 1, 7, 8, 9, 2048, 2053, 20'001};

class ConversionTest : public KernelsTest<Conversion> {
 protected:
  Rng rng_{21, 0};
};

TEST_F(ConversionTest, IsThatOfTheHost) {
  in_both_orders([&] {
    for (const std::size_t n : kConversionSizes) {
      auto x = random_values<float>(rng_, n, 3);
      if (n > 8) {
        x[0] = std::numeric_limits<float>::quiet_NaN();
        x[8] = std::numeric_limits<float>::infinity();
        x[1] = std::numeric_limits<float>::max();  // rounds to infinity
      }
      const auto from = upload(x), back = array<float>(n);
      const auto to = array<BFloat16>(n);
      ASSERT_TRUE(kernels_->convert(*stream_, DType::kF32, from.data(), DType::kBF16, to.data(), n).ok());
      ASSERT_TRUE(kernels_->convert(*stream_, DType::kBF16, to.data(), DType::kF32, back.data(), n).ok());
      const auto half = download(to);
      const auto whole = download(back);
      for (std::size_t i = 0; i < n; ++i) {
        const BFloat16 expected(x[i]);
        if (std::isnan(x[i])) {
          EXPECT_TRUE(std::isnan(static_cast<float>(half[i])) && std::isnan(whole[i]));
          continue;
        }
        EXPECT_EQ(static_cast<float>(half[i]), static_cast<float>(expected)) << i << " of " << n;
        EXPECT_EQ(whole[i], static_cast<float>(expected)) << i << " of " << n;
      }
    }
  });
}

TEST_F(ConversionTest, OfEqualTypesIsACopyAndOfOthersRefused) {
  const auto x = random_values<float>(rng_, 5, 3);
  const auto from = upload(x), to = array<float>(5);
  ASSERT_TRUE(kernels_->convert(*stream_, DType::kF32, from.data(), DType::kF32, to.data(), 5).ok());
  EXPECT_EQ(download(to), x);
  EXPECT_TRUE(absl::IsInvalidArgument(
      kernels_->convert(*stream_, DType::kF32, from.data(), DType::kI64, to.data(), 5)));
}

}  // namespace
}  // namespace paceline::cuda
