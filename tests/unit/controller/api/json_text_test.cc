#include "controller/api/json_text.h"

#include <gtest/gtest.h>

namespace paceline::api {
namespace {

TEST(JsonTextTest, ScalarsAreWhatKubectlMakesOfThem) {
  struct Case {
    const char *yaml, *json;
  };
  for (const Case& each : {Case{"1", "1"},
                           {"-3", "-3"},
                           {"+4", "4"},
                           {"0", "0"},
                           {"0644", "420"},
                           {"0o644", "420"},
                           {"0x1f", "31"},
                           {"-0x1f", "-31"},
                           {"0.0625", "0.0625"},
                           {".5", "0.5"},
                           {"1e-3", "1e-3"},
                           {"2.", "2"},
                           {"true", "true"},
                           {"off", "false"},
                           {"~", "null"},
                           {"", "null"},
                           {"\"1\"", "\"1\""},
                           {"'yes'", "\"yes\""},
                           {"512Ki", "\"512Ki\""},
                           {"1.2.3", "\"1.2.3\""},
                           {"08", "\"08\""},
                           {"1e", "\"1e\""},
                           {".", "\".\""},
                           {"2026-01-31", "\"2026-01-31\""},
                           {"99999999999999999999", "99999999999999999999"},
                           {"\"a\\\"b\\\\c\\nd\"", "\"a\\\"b\\\\c\\u000ad\""}}) {
    EXPECT_EQ(json_text(std::string("a: ") + each.yaml + "\nb: 1\n"),
              std::string("{\"a\":") + each.json + ",\"b\":1}")
        << each.yaml;
  }
}

TEST(JsonTextTest, ListsMapsAndAliases) {
  EXPECT_EQ(json_text("a: &x [1, {b: c}]\nd: *x\ne: {}\nf: []\n1: one\n"),
            R"({"a":[1,{"b":"c"}],"d":[1,{"b":"c"}],"e":{},"f":[],"1":"one"})");
  EXPECT_EQ(json_text("a: |\n  one\n  two\n"), R"({"a":"one\u000atwo\u000a"})");
  EXPECT_EQ(json_text(R"({"a": {"b": [true, null]}})"), R"({"a":{"b":[true,null]}})");
}

}  // namespace
}  // namespace paceline::api
