#include "base/hex.h"

#include <gtest/gtest.h>

#include <array>

namespace paceline {
namespace {

using namespace std::string_view_literals;

TEST(HexTest, TwoDigitsAByteInOrder) {
  EXPECT_EQ(hex(""), "");
  EXPECT_EQ(hex("\x00\x0a\x10\x7f\x80\xff"sv), "000a107f80ff");
  EXPECT_EQ(hex("\x01\x23\x45\x67\x89\xab\xcd\xef"sv), "0123456789abcdef");
  EXPECT_EQ(hex(std::array{std::byte{0xc0}, std::byte{0x0d}}), "c00d");
}

}  // namespace
}  // namespace paceline
