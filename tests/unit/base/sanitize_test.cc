#include "base/sanitize.h"

#include <gtest/gtest.h>

#include <utility>

namespace paceline {
namespace {

TEST(Visible, UnsafeBytesAreEscaped) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"plain\ttext\n", "plain\ttext\n"},
      {"\x1b[2J", "\\x1b[2J"},
      {"\x07\x7f\r", "\\x07\\x7f\\x0d"},
      {std::string_view("\0", 1), "\\x00"},
      {"\xc2\x9b"
       "1m",
       "\\xc2\\x9b1m"},
      {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"\xe2\x80\xa8 \xe2\x80\xae", "\\xe2\\x80\\xa8 \\xe2\\x80\\xae"},  // a line's end; right to left
      {"\xe2\x81\xa6 \xe2\x81\xa9", "\\xe2\\x81\\xa6 \\xe2\\x81\\xa9"},  // isolates
      {"\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
       "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"},
      {"\xff", "\\xff"},
      {"\xc3", "\\xc3"},
      {"\xc0\xaf", "\\xc0\\xaf"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(sanitize(text), expected);
}

}  // namespace
}  // namespace paceline
