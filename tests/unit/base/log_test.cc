#include "base/log.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(LogTest, TextPutsTheFieldsBehindTheMessage) {
  EXPECT_EQ(text_line("pod created", {}), "pod created");
  EXPECT_EQ(text_line("pod created", {{"job", "default/a"}, {"reason", "it said \"no\"\n"}}),
            R"(pod created job="default/a" reason="it said \"no\"\n")");
}

TEST(LogTest, JsonEscapesWhateverComes) {
  EXPECT_EQ(json_members("a\tb\x01\x7f\\", {{"job", "\""}}),
            R"("message":"a\u0009b\u0001\u007f\\","job":"\"")");
  EXPECT_EQ(json_members("\xc3\xa4 \xf0\x9f\x98\x80", {}), "\"message\":\"\xc3\xa4 \xf0\x9f\x98\x80\"");
}

TEST(LogTest, ControlCharactersBeyondAsciiAreEscapedToo) {
  const std::string text =
      "a\xc2\x9b"
      "b\xe2\x80\xae"
      "c\xe2\x81\xa6";
  EXPECT_EQ(text_line("", {{"pod", text}}), R"( pod="a\u009bb\u202ec\u2066")");
  EXPECT_EQ(json_members(text, {}), R"("message":"a\u009bb\u202ec\u2066")");
}

TEST(LogTest, InvalidUtf8IsReplaced) {
  const std::string replaced = "\xef\xbf\xbd";
  for (const std::string bad : {"\xff", "\xc0", "\x80"}) {
    EXPECT_EQ(json_members(bad, {}), "\"message\":\"" + replaced + "\"");
  }
  EXPECT_EQ(json_members("\xc3", {}), "\"message\":\"" + replaced + "\"") << "cut";
  EXPECT_EQ(json_members("\xed\xa0\x80", {}), "\"message\":\"" + replaced + replaced + replaced + "\"")
      << "a surrogate";
}

}  // namespace
}  // namespace paceline
