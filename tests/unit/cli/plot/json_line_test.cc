#include "cli/plot/json_line.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline::cli {
namespace {

TEST(JsonLineTest, ObjectsAreRead) {
  EXPECT_EQ(parse_json_line(R"({"step": 3})")["step"], 3);
}

TEST(JsonLineTest, OtherThingsThanObjectsAreNull) {
  for (const char* line : {"", "3", "[1]", "{\"step\": ", "null"})
    EXPECT_TRUE(parse_json_line(line).is_null()) << line;
}

TEST(JsonLineTest, LongLinesAreNull) {
  EXPECT_TRUE(parse_json_line(R"({"a": ")" + std::string(kMostJsonLineBytes, 'x') + "\"}").is_null());
}

TEST(JsonLineTest, NothingIsReadBelowItsDepth) {
  std::string deep = "1";
  for (int i = 0; i < 100'000; ++i) deep.insert(0, "[");
  EXPECT_TRUE(parse_json_line(R"({"a": )" + deep).is_null());
  const nlohmann::json line = parse_json_line(R"({"a": [[[[[[[[[1]]]]]]]]]})");
  EXPECT_EQ(line.dump().find('1'), std::string::npos);
}

}  // namespace
}  // namespace paceline::cli
