#include "controller/cluster/kube/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::kube {
namespace {

using ::testing::HasSubstr;

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

TEST(JsonTest, ReadsWhatIsThere) {
  const auto json = parse_json(R"({"a": {"b": "text", "n": 7, "t": true, "l": [1, 2]}})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(text_at(*json, {"a", "b"}), "text");
  EXPECT_EQ(integer_at(*json, {"a", "n"}), 7);
  EXPECT_TRUE(flag_at(*json, {"a", "t"}));
  EXPECT_EQ(list_at(*json, {"a", "l"}).size(), 2u);
}

TEST(JsonTest, MissingOrMistypedValueIsEmpty) {
  const Json json = {{"a", 1}, {"b", nullptr}, {"c", {1, 2}}};
  EXPECT_EQ(text_at(json, {"a"}), "");
  EXPECT_EQ(text_at(json, {"a", "b", "c"}), "");
  EXPECT_EQ(text_at(json, {"c", "0"}), "");
  EXPECT_EQ(integer_at(json, {"b"}), 0);
  EXPECT_FALSE(flag_at(json, {"a"}));
  EXPECT_TRUE(list_at(json, {"nothing"}).empty());
  EXPECT_TRUE(at(json, {"nothing", "at", "all"}).is_null());
}

TEST(JsonTest, GarbageIsShownHarmless) {
  const auto json = parse_json("<html>\x1b[2J\xff oh\n no");
  EXPECT_EQ(json.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(json.status().message()), HasSubstr("\"<html>?[2J? oh  no\""));
  EXPECT_THAT(std::string(parse_json("").status().message()), HasSubstr("empty"));
  EXPECT_LT(parse_json(std::string(1 << 20, 'x')).status().message().size(), 300u);
}

TEST(JsonTest, InvalidJsonIsRefused) {
  for (const char* text :
       {"{", "{}}", "[1,]", "nul", "1e999", "{\"a\":1", "\"\xff\"", "{} {}", "]", "\"\\"}) {
    EXPECT_EQ(parse_json(text).status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST(JsonTest, NestingIsBounded) {
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth)).ok());
  EXPECT_EQ(parse_json(nested(kMaxJsonDepth + 1)).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(parse_json(std::string(10 << 20, '[')).ok());
  EXPECT_TRUE(parse_json('"' + std::string(1000, '[') + "\\\"[\"").ok()) << "brackets in texts are no lists";
}

TEST(JsonTest, ValuesAreBounded) {
  std::string text = "[0";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) text += ",0";
  EXPECT_THAT(std::string(parse_json(text + "]").status().message()), HasSubstr("values"));
}

TEST(JsonTest, SanitizeKeepsTextAndNothingElse) {
  EXPECT_EQ(sanitize_line("größe \u2713 \U0001F600", 100), "größe \u2713 \U0001F600");
  EXPECT_EQ(sanitize_line("a\x01\x7f\xc2\x9b"
                          "b",
                          100),
            "a???b");                                                   // a C1 control
  EXPECT_EQ(sanitize_line("\xe2\x80\xae", 100), "?");                   // right-to-left override
  EXPECT_EQ(sanitize_line("\xc0\xaf\xed\xa0\x80\xf5", 100), "??????");  // overlong, surrogate, too large
  EXPECT_EQ(sanitize_line("\xe2\x9c", 100), "??");                      // cut
  EXPECT_EQ(sanitize_line("abcdef", 3), "abc...");
  EXPECT_EQ(sanitize_line("abü", 3), "ab...");
}

TEST(JsonTest, WritesWhatIsNoUtf8) {
  EXPECT_EQ(dump(Json("a\xff")), "\"a\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace paceline::kube
