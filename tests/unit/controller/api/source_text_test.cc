#include "controller/api/source_text.h"

#include <gtest/gtest.h>

#include "base/sanitize.h"

namespace paceline::api {
namespace {

TEST(SourceText, KnowsUtf8FromWhatOnlyLooksLikeIt) {
  const struct {
    std::string_view text;
    std::size_t length;  // of the first character
  } cases[] = {
      {"a", 1},
      {"\xc3\xa9", 2},
      {"\xe2\x82\xac", 3},
      {"\xf0\x9f\x98\x80", 4},
      {"\x80", 0},
      {"\xc3", 0},
      {"\xc3(", 0},
      {"\xc0\xaf", 0},
      {"\xed\xa0\x80", 0},
      {"\xe0\x80\xaf", 0},
      {"\xf4\x90\x80\x80", 0},
      {"\xff", 0},
  };
  for (const auto& [text, length] : cases) {
    EXPECT_EQ(utf8_bytes(text), length) << text;
    EXPECT_EQ(is_utf8(text), length > 0) << text;
  }
  EXPECT_TRUE(is_utf8(""));
  EXPECT_FALSE(is_utf8("name\xff"));
}

}  // namespace
}  // namespace paceline::api
