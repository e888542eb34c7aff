#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace paceline {
namespace {

// Each place must change in one of the draws: that all of 16 leave a byte zero happens once in 2^128.
TEST(RandomTest, FillsEveryByte) {
  for (const std::size_t size : {0, 1, 255, 256, 257, 1000}) {
    std::vector<std::byte> seen(size);
    for (int draw = 0; draw < 16; ++draw) {
      std::vector<std::byte> bytes(size);
      fill_random(bytes);
      for (std::size_t i = 0; i < size; ++i) seen[i] |= bytes[i];
    }
    EXPECT_EQ(std::ranges::count(seen, std::byte{0}), 0) << "of " << size;
  }
}

TEST(RandomTest, FillsNothingElse) {
  std::vector<std::byte> bytes(300);
  for (int draw = 0; draw < 16; ++draw) fill_random(std::span(bytes).subspan(10, 280));
  const auto zero = [](std::byte byte) { return byte == std::byte{0}; };
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.begin() + 10, zero));
  EXPECT_TRUE(std::all_of(bytes.end() - 10, bytes.end(), zero));
}

TEST(RandomTest, NoTwoAreEqual) {
  EXPECT_EQ(random_bytes(16).size(), 16u);
  EXPECT_NE(random_bytes(16), random_bytes(16));
}

}  // namespace
}  // namespace paceline
