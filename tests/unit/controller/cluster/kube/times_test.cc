#include "controller/cluster/kube/times.h"

#include <gtest/gtest.h>

namespace paceline::kube {
namespace {

TEST(TimesTest, ReadsWhatKubernetesWrites) {
  const auto base = parse_time("2026-01-31T12:00:00Z");
  ASSERT_TRUE(base);
  EXPECT_EQ(base->time_since_epoch(), std::chrono::seconds(1769860800));
  EXPECT_EQ(parse_time("2026-01-31T12:00:00.25Z"), *base + std::chrono::milliseconds(250));
  EXPECT_EQ(parse_time("2026-01-31T12:00:00.123456Z"), *base + std::chrono::microseconds(123456));
  EXPECT_EQ(parse_time("2026-01-31T12:00:00.1234567891Z"), *base + std::chrono::nanoseconds(123456789));
  EXPECT_EQ(parse_time("2026-01-31T14:30:00+02:30"), base);
  EXPECT_EQ(parse_time("2026-01-31T10:00:00-02:00"), base);
  EXPECT_EQ(parse_time("2024-02-29T00:00:00Z")->time_since_epoch(), std::chrono::seconds(1709164800));
}

TEST(TimesTest, RefusesTheRest) {
  for (const char* text :
       {"", "2026", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31 12:00:00Z", "2026-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z", "2026-00-01T12:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z",
        "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00+2", "2026-01-31T12:00:00+02:99",
        "2026-01-31T12:00:00ZZ", "9999-01-31T12:00:00Z", "1812-01-31T12:00:00Z", "2026-01-3xT12:00:00Z",
        "+026-01-31T12:00:00Z"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(TimesTest, WritesSixDigits) {
  const WallTime time = *parse_time("2026-01-31T02:03:04.0000056Z");
  EXPECT_EQ(format_micro_time(time), "2026-01-31T02:03:04.000005Z");
  EXPECT_EQ(parse_time(format_micro_time(time)), *parse_time("2026-01-31T02:03:04.000005Z"));
}

TEST(TimesTest, WritesWholeSeconds) {
  EXPECT_EQ(format_seconds(*parse_time("2026-01-31T02:03:04.999Z")), "2026-01-31T02:03:04Z");
}

}  // namespace
}  // namespace paceline::kube
