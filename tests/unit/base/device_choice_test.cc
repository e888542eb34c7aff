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

TEST(DeviceChoice, WhatIsNoneIsSaidWithWhatIsAllowed) {
  for (const char* text : {"gpu", "CUDA", "cuda:", "cuda:64", "cuda:-1", "cuda:1x", "cuda 1", " cpu"}) {
    const auto choice = parse_device_choice(text);
    EXPECT_EQ(choice.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(std::string(choice.status().message()),
              "is \"" + std::string(text) + "\"; it must be auto, cpu, cuda, or cuda:N with N from 0 to 63");
  }
  EXPECT_LT(parse_device_choice(std::string(10'000, 'x')).status().message().size(), 200U);
}

}  // namespace
}  // namespace paceline
