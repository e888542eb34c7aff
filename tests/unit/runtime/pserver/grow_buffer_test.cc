#include "runtime/pserver/grow_buffer.h"

#include <gtest/gtest.h>

#include <numeric>

namespace paceline::pserver {
namespace {

TEST(GrowBuffer, StaysWhereItIsUntilItMustGrow) {
  GrowBuffer<int> buffer;
  EXPECT_TRUE(buffer.all().empty());
  const std::span<int> first = buffer.take(5);
  ASSERT_EQ(first.size(), 5u);
  std::iota(first.begin(), first.end(), 1);
  EXPECT_EQ(buffer.take(0).size(), 0u);
  EXPECT_EQ(buffer.take(8).data(), first.data()) << "rounded up to 8";
  EXPECT_EQ(buffer.all()[4], 5);
  const std::span<int> larger = buffer.take(9);
  ASSERT_EQ(larger.size(), 9u);
  std::iota(larger.begin(), larger.end(), 1);
  EXPECT_EQ(buffer.take(16).data(), larger.data());
}

}  // namespace
}  // namespace paceline::pserver
