#include "controller/coordinator/core_load.h"

#include <gtest/gtest.h>

namespace paceline::coordinator {
namespace {

using std::chrono::milliseconds;

v1::ServerStats stats(std::int64_t busy_ms, std::uint64_t in, std::uint64_t out) {
  v1::ServerStats s;
  s.set_busy_ns(busy_ms * 1'000'000);
  s.set_bytes_received(in);
  s.set_bytes_sent(out);
  return s;
}

TEST(ServerLoadTest, RatesAreOfWholeWindows) {
  ServerLoad load;
  EXPECT_FALSE(load.telemetry().has_value());
  load.add(stats(100, 1000, 500), TimePoint(milliseconds(0)));
  EXPECT_EQ(load.telemetry()->load, 0);
  load.add(stats(400, 9000, 500), TimePoint(milliseconds(500)));
  EXPECT_EQ(load.telemetry()->load, 0) << "half a window tells too little";
  load.add(stats(600, 3000, 2500), TimePoint(milliseconds(2000)));
  EXPECT_DOUBLE_EQ(load.telemetry()->load, 0.25);
  EXPECT_DOUBLE_EQ(load.telemetry()->bytes_per_second, 2000);
}

TEST(ServerLoadTest, CountsThatGoBackBeginAnew) {
  ServerLoad load;
  load.add(stats(900, 1000, 500), TimePoint(milliseconds(0)));
  load.add(stats(100, 10, 0), TimePoint(milliseconds(1500)));
  EXPECT_EQ(load.telemetry()->load, 0);
  load.add(stats(600, 10, 0), TimePoint(milliseconds(2500)));
  EXPECT_DOUBLE_EQ(load.telemetry()->load, 0.5);
}

}  // namespace
}  // namespace paceline::coordinator
