#include "proto/telemetry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/filled.h"

namespace paceline {
namespace {

TEST(TelemetryTest, AGpuGoesThereAndBack) {
  const auto all = filled<GpuTelemetry>();
  v1::GpuStats message;
  to_wire(all, message);
  EXPECT_EQ(telemetry_of(message), all);
  message.Clear();
  GpuTelemetry none;
  none.uncorrected_ecc_errors = 0;
  to_wire(none, message);
  EXPECT_EQ(telemetry_of(message), none) << "zero is told, and what is not told is empty";
}

TEST(TelemetryTest, NumbersAndTextsAreBroughtIntoRange) {
  v1::GpuStats stats;
  stats.set_name(std::string(1000, 'x'));
  stats.set_uuid(std::string(1000, 'x'));
  stats.set_utilization(std::nan(""));
  stats.set_memory_utilization(17);
  stats.set_power_watts(-1);
  stats.set_compute_ms(std::numeric_limits<double>::infinity());
  stats.set_update_ms(-1);
  stats.set_memory_used_mib(std::numeric_limits<std::uint64_t>::max());
  stats.set_pcie_replays(std::numeric_limits<std::uint64_t>::max());
  for (int i = 0; i < 100; ++i) stats.add_slowdowns(std::string(1000, 'y'));
  const GpuTelemetry r = telemetry_of(stats);
  EXPECT_EQ(r.name.size(), 64u);
  EXPECT_EQ(r.uuid.size(), 64u);
  EXPECT_FALSE(r.utilization.has_value());
  EXPECT_EQ(r.memory_utilization, 1);
  EXPECT_EQ(r.power_watts, 0);
  EXPECT_FALSE(r.compute_ms.has_value());
  EXPECT_EQ(r.update_ms, 0);
  EXPECT_EQ(r.memory_used_mib, kMostCount);
  EXPECT_EQ(r.pcie_replays, kMostCount);
  ASSERT_EQ(r.slowdowns.size(), 8u);
  EXPECT_EQ(r.slowdowns[7].size(), 64u);
}

TEST(TelemetryTest, CountsOfServersAndWorkersAreBroughtIntoRange) {
  v1::ServerStats s;
  s.set_queue(-1);
  s.set_updates(std::numeric_limits<std::int64_t>::max());
  s.set_row_bytes(std::numeric_limits<std::uint64_t>::max());
  s.set_rows_evicted(-7);
  for (int i = 0; i < 20; ++i) s.add_hottest()->set_table(std::string(200, 'x'));
  const ServerTelemetry server = telemetry_of(s);
  EXPECT_EQ(server.queue, 0);
  EXPECT_EQ(server.updates, kMostCount);
  EXPECT_EQ(server.row_bytes, kMostCount);
  EXPECT_EQ(server.rows_evicted, 0);
  ASSERT_EQ(server.hottest.size(), 8u);
  EXPECT_EQ(server.hottest[0].table.size(), 64u);

  v1::StalenessStats staleness;
  staleness.set_mean(std::nan(""));
  staleness.set_max(-3);
  staleness.set_dropped(7);
  for (int i = 0; i < 100; ++i) staleness.add_histogram(-i);
  StalenessTelemetry r = telemetry_of(staleness);
  EXPECT_EQ(r.mean, 0);
  EXPECT_EQ(r.max, 0);
  EXPECT_EQ(r.dropped, 7);
  EXPECT_TRUE(r.histogram.empty()) << "no zeros at its end";
  staleness.set_histogram(3, 5);
  staleness.set_histogram(50, 5);
  staleness.set_wait_seconds(1.5003);
  r = telemetry_of(staleness);
  EXPECT_EQ(r.histogram, (std::vector<std::int64_t>{0, 0, 0, 5}));
  EXPECT_EQ(r.wait_seconds, 1.5) << "in thousandths";
}

// Ids are hashes: no bit of one is lost.
TEST(TelemetryTest, AnIdIsWhole) {
  v1::ServerStats s;
  s.add_hottest()->set_id(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(telemetry_of(s).hottest.at(0).id, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace paceline
