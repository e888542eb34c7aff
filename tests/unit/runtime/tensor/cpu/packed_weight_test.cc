#include "runtime/tensor/cpu/packed_weight.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace paceline::tensor::cpu {
namespace {

// Processors without bf16 compute in fp32 with rounded weights, which may have the form that they are given
// in.
TEST(PackedWeightTest, WeightsThatAreOnlyRoundedHaveMemoryOfTheirOwn) {
  const DnnlContext context;
  const Layout plain = plain_layout({16, 65});
  PackedWeight packed(context, plain, plain, nullptr, true);
  EXPECT_EQ(packed.bytes(), plain.get_size());
  std::vector<float> weight(plain.get_size() / sizeof(float));
  std::iota(weight.begin(), weight.end(), 1.0F);
  weight[0] = 1 + 1.0F / 512;  // finer than bf16
  packed.allocate();
  packed.bind(weight.data());
  ASSERT_NE(packed.data(), weight.data());
  packed.refresh(1);
  const auto* rounded = static_cast<const float*>(packed.data());
  EXPECT_EQ(rounded[0], 1);
  EXPECT_EQ(rounded[255], 256);
  EXPECT_EQ(rounded[weight.size() - 1], 1040);
}

TEST(PackedWeightTest, WeightsThatAreAsTheyShouldBeAreNotCopied) {
  const DnnlContext context;
  const Layout plain = plain_layout({4, 4});
  PackedWeight packed(context, plain, plain, nullptr, false);
  EXPECT_EQ(packed.bytes(), 0U);
  const std::vector<float> weight(16);
  packed.allocate();
  packed.bind(weight.data());
  EXPECT_EQ(packed.data(), weight.data());
}

}  // namespace
}  // namespace paceline::tensor::cpu
