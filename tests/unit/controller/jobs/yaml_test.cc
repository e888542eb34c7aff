#include "controller/jobs/yaml.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace paceline::jobs {
namespace {

TEST(YamlTest, BlockStyleWithListsAsKubectlPrintsThem) {
  EXPECT_EQ(
      yaml_of(R"({"kind": "List", "items": [{"a": 1, "b": [true, null]}, "x"], "empty": {}, "none": []})"),
      "kind: List\n"
      "items:\n"
      "- a: 1\n"
      "  b:\n"
      "  - true\n"
      "  - null\n"
      "- x\n"
      "empty: {}\n"
      "none: []\n");
  EXPECT_EQ(yaml_of("[[1, 2], []]"), "- - 1\n  - 2\n- []\n");
  EXPECT_EQ(yaml_of("[]"), "[]\n");
}

std::string with_text(std::string_view text) {
  return yaml_of(nlohmann::json({{"k", text}}).dump());
}

TEST(YamlTest, TextsThatCouldBeSomethingElseAreQuoted) {
  for (const char* text : {"",   "1",  "true", "Yes",        "null", "off", "- a", "a: b", "a:",   " a",
                           "a ", "#a", "a #b", "2026-01-31", "~",    "*x",  "1e3", "0x1f", "a\tb", "a\nb",
                           "{",  "[",  "!x",   "%x",         "@x",   "`x",  "\"",  "'",    "-"}) {
    EXPECT_EQ(with_text(text), "k: " + nlohmann::json(text).dump() + "\n");
  }
  for (const char* text :
       {"a", "paceline.dev/v1alpha1", "trainer:1.2", "http://x/y", "worker-1", "a b", "/path"}) {
    EXPECT_EQ(with_text(text), std::string("k: ") + text + "\n");
  }
}

}  // namespace
}  // namespace paceline::jobs
