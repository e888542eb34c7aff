#include "controller/api/read_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::api {
namespace {

using ::testing::HasSubstr;

std::string read(std::string_view text, std::int64_t& size) {
  const std::vector<Diagnostic> found =
      read_fields(text, "f.yaml",
                  {.what = "settings",
                   .allowed = "a map with kind: Settings",
                   .visit =
                       [&](FieldVisitor& v) {
                         v.constant({.name = "kind", .required = true}, "Settings");
                         v.integer({.name = "size"}, {1, 10}, size);
                       },
                   .check = [&]() -> std::pair<std::string, std::string> {
                     return {"size", size == 7 ? "seven is not possible here" : ""};
                   }});
  return render_diagnostics(found, text);
}

TEST(ReadFieldsTest, FieldsAreReadAndErrorsHaveTheirPlace) {
  std::int64_t size = 3;
  EXPECT_EQ(read("kind: Settings\n", size), "");
  EXPECT_EQ(size, 3);
  EXPECT_EQ(read("{\"kind\": \"Settings\", \"size\": 9}", size), "");
  EXPECT_EQ(size, 9);
  EXPECT_THAT(read("kind: Settings\nsize: 11\n", size), HasSubstr("f.yaml:2:"));
  EXPECT_THAT(read("kind: Settings\nsice: 1\n", size), HasSubstr("did you mean \"size\"?"));
  EXPECT_THAT(read("kind: Settings\nsize: 7\n", size),
              HasSubstr("f.yaml:2:7: error: size: seven is not possible"));
  EXPECT_THAT(read("size: 7\nkind: Other\n", size), ::testing::Not(HasSubstr("seven"))) << "first the fields";
  for (const char* other : {"- 1\n", "", "# size: 3\n"}) {
    const std::string said = read(other, size);
    EXPECT_THAT(said, HasSubstr("the file holds no settings")) << other;
    EXPECT_THAT(said, HasSubstr("a map with kind: Settings")) << other;
  }
  EXPECT_THAT(read("kind: [\n", size), HasSubstr("f.yaml:"));
  EXPECT_THAT(read(std::string_view("\0", 1), size), HasSubstr("f.yaml:1:1"));
}

}  // namespace
}  // namespace paceline::api
