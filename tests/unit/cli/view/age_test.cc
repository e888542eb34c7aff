#include "cli/view/age.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

using namespace std::chrono_literals;

TEST(AgeTest, AsKubectlWritesThem) {
  struct Case {
    Duration age;
    const char* text;
  };
  const WallTime then{};
  for (const Case& each : {Case{0s, "0s"},
                           {119s, "119s"},
                           {120s, "2m"},
                           {330s, "5m30s"},
                           {10min, "10m"},
                           {179min, "179m"},
                           {180min, "3h"},
                           {200min, "3h20m"},
                           {9h, "9h"},
                           {47h + 59min, "47h"},
                           {52h, "2d4h"},
                           {72h, "3d"},
                           {200h, "8d"},
                           {-5s, "0s"}}) {
    EXPECT_EQ(age_text(then, then + each.age), each.text);
  }
  EXPECT_EQ(age_text(std::nullopt, then), "-");
}

TEST(AgeTest, ReadsThem) {
  EXPECT_EQ(*parse_age("90"), Duration(90s));
  EXPECT_EQ(*parse_age("30s"), Duration(30s));
  EXPECT_EQ(*parse_age("1h30m"), Duration(90min));
  EXPECT_EQ(*parse_age("2d"), Duration(48h));
  for (const char* wrong : {"", "s", "-5s", "5x", "1.5h", "99999999999999d", "5 m", "400000d"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(parse_age(wrong).status())) << wrong;
  }
}

}  // namespace
}  // namespace paceline::cli
