#include "base/whole_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace paceline {
namespace {

TEST(WholeNumber, DecimalDigitsWithinTheBounds) {
  for (const char* text : {"0", "1", "10", "256"}) EXPECT_EQ(whole_number_fault(text, 0, 256), "") << text;
  for (const char* text : {"-3", "-10", "-0", "0"}) EXPECT_EQ(whole_number_fault(text, -10, 0), "") << text;
  EXPECT_EQ(whole_number_fault<std::uint64_t>("18446744073709551615", 0, UINT64_MAX), "");
}

TEST(WholeNumber, InvalidTextIsNamedWithTheRange) {
  for (const char* text : {"", "-", "257", "-1", "+1", "1.5", "1e2", " 1", "1 ", "99999999999999999999"})
    EXPECT_EQ(whole_number_fault(text, 0, 256), str_cat("\"", text, "\" is no whole number from 0 to 256"));
  EXPECT_EQ(whole_number_fault<std::uint64_t>("-1", 0, 5), "\"-1\" is no whole number from 0 to 5");
}

TEST(WholeNumber, NeitherOctalNorHexadecimal) {
  for (const char* text : {"010", "00", "08", "-010", "0x10"}) {
    EXPECT_EQ(whole_number_fault(text, -256, 256),
              str_cat("\"", text, "\" is no whole number from -256 to 256: it begins with a zero"));
  }
}

TEST(WholeNumber, AFractionsOneZeroIsItsOwn) {
  for (const char* text : {"010", "-010", "+010", "00", "00.5", "0x10", "01e1"})
    EXPECT_TRUE(begins_with_a_zero(text)) << text;
  for (const char* text : {"", "-", "0", "-0", "0.5", "-0.5", "0e1", "0E1", ".5", "10"})
    EXPECT_FALSE(begins_with_a_zero(text)) << text;
}

}  // namespace
}  // namespace paceline
