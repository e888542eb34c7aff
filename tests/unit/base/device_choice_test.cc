#include "base/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace paceline {
namespace {

using Kind = DeviceChoice::Kind;

TEST(DeviceChoice, EachValue) {
  struct Row {
    const char* text;
    Kind kind;
    std::optional<int> ordinal;
  };
  const Row rows[] = {{"", Kind::kAuto, {}},       {"auto", Kind::kAuto, {}},  {"cpu", Kind::kCpu, {}},
                      {"cuda", Kind::kCuda, {}},   {"cuda:0", Kind::kCuda, 0}, {"cuda:7", Kind::kCuda, 7},
                      {"cuda:63", Kind::kCuda, 63}};
  for (const Row& row : rows) {
    const auto choice = parse_device_choice(row.text);
    ASSERT_TRUE(choice.ok()) << choice.status();
    EXPECT_EQ(choice->kind, row.kind) << row.text;
    EXPECT_EQ(choice->ordinal, row.ordinal) << row.text;
  }
}

TEST(DeviceChoice, InvalidChoiceIsRefusedWithTheAllowedOnes) {
  for (const char* text :
       {"gpu", "CUDA", "cuda:", "cuda:64", "cuda:-1", "cuda:-0", "cuda:00", "cuda:01", "cuda:+1", "cuda: 1",
        "cuda:1 ", "cuda:0x1", "cuda:1.0", "cuda:99999999999", "cuda:1x", "cuda 1", " cpu"}) {
    const auto choice = parse_device_choice(text);
    EXPECT_EQ(choice.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(std::string(choice.status().message()),
              "is \"" + std::string(text) + "\"; it must be auto, cpu, cuda, or cuda:N with N from 0 to 63");
  }
  EXPECT_LT(parse_device_choice(std::string(10'000, 'x')).status().message().size(), 200U);
}

TEST(DeviceChoice, GraphsAreOnUnlessTheyAreOff) {
  for (const char* text : {"", "on", "ON"}) EXPECT_TRUE(parse_cuda_graphs(text).value()) << text;
  for (const char* text : {"off", "Off"}) EXPECT_FALSE(parse_cuda_graphs(text).value()) << text;
  EXPECT_EQ(parse_cuda_graphs("0").status(), absl::InvalidArgumentError("is \"0\"; it must be on or off"));
}

TEST(DeviceChoice, InvalidVariableIsAnsweredWithItsAllowedValues) {
  EXPECT_EQ(device_rule_broken("PACELINE_DEVICE", "cuda:64"),
            "auto, cpu, cuda, or cuda:N with N from 0 to 63");
  EXPECT_EQ(device_rule_broken("PACELINE_CUDA_GRAPHS", "cpu"), "on or off");
  EXPECT_EQ(device_rule_broken("PACELINE_DEVICE", "cpu"), "");
  EXPECT_EQ(device_rule_broken("PACELINE_CUDA_GRAPHS", ""), "");
  EXPECT_EQ(device_rule_broken("DEVICE", "tpu"), "");
}

TEST(DeviceChoice, BothVariablesAndWhichOfThemIsWrong) {
  EXPECT_EQ(parse_device_settings({}).value().choice.kind, Kind::kAuto);
  EXPECT_TRUE(parse_device_settings({}).value().cuda_graphs);
  const auto both = parse_device_settings({"cuda:2", "off"});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->choice.ordinal, 2);
  EXPECT_FALSE(both->cuda_graphs);
  EXPECT_THAT(std::string(parse_device_settings({"gpu", "off"}).status().message()),
              ::testing::StartsWith("PACELINE_DEVICE is \"gpu\"; it must be auto"));
  EXPECT_EQ(parse_device_settings({"cpu", "no"}).status(),
            absl::InvalidArgumentError("PACELINE_CUDA_GRAPHS is \"no\"; it must be on or off"));
}

}  // namespace
}  // namespace paceline
