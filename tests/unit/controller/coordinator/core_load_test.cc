#include "controller/coordinator/core_load.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "controller/coordinator/core_progress.h"

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

TEST(GpuReportTest, WhatIsToldIsTaken) {
  v1::GpuStats stats;
  stats.set_name("NVIDIA H200");
  stats.set_index(3);
  stats.set_uuid("GPU-4b1d5d31-0000-0000-0000-000000000003");
  stats.set_compute_ms(41.25);
  stats.set_update_ms(1.5);
  stats.set_utilization(0.93);
  stats.set_memory_used_mib(61'234);
  stats.set_memory_total_mib(143'771);
  stats.set_most_memory_clock_mhz(3202);
  stats.set_sm_clock_mhz(1755);
  stats.set_temperature_celsius(-3);
  stats.set_power_watts(612.5);
  stats.add_slowdowns("power cap");
  stats.set_uncorrected_ecc_errors(0);
  stats.set_xids(2);
  stats.set_last_xid(79);
  const GpuReport r = from_wire(stats);
  EXPECT_EQ(r.name, "NVIDIA H200");
  EXPECT_EQ(r.index, 3);
  EXPECT_EQ(r.uuid, "GPU-4b1d5d31-0000-0000-0000-000000000003");
  EXPECT_EQ(r.compute_ms, 41.25);
  EXPECT_EQ(r.update_ms, 1.5);
  EXPECT_EQ(r.utilization, 0.93);
  EXPECT_EQ(r.memory_used_mib, 61'234);
  EXPECT_EQ(r.memory_total_mib, 143'771);
  EXPECT_EQ(r.most_memory_clock_mhz, 3202);
  EXPECT_EQ(r.sm_clock_mhz, 1755);
  EXPECT_EQ(r.temperature_celsius, -3);
  EXPECT_EQ(r.power_watts, 612.5);
  EXPECT_EQ(r.slowdowns, std::vector<std::string>{"power cap"});
  EXPECT_EQ(r.uncorrected_ecc_errors, 0);
  EXPECT_EQ(r.xids, 2);
  EXPECT_EQ(r.last_xid, 79);
  EXPECT_FALSE(r.memory_utilization || r.most_sm_clock_mhz || r.memory_clock_mhz || r.power_limit_watts ||
               r.corrected_ecc_errors || r.pcie_replays)
      << "what was not told is empty";
  EXPECT_FALSE(from_wire(v1::GpuStats()).index.has_value()) << "as of a member of an earlier release";
}

TEST(GpuReportTest, WhatIsSentIsBroughtIntoRange) {
  v1::GpuStats stats;
  stats.set_name(std::string(1000, 'x'));
  stats.set_uuid(std::string(1000, 'x'));
  stats.set_utilization(std::nan(""));
  stats.set_memory_utilization(17);
  stats.set_power_watts(-1);
  stats.set_compute_ms(std::numeric_limits<double>::infinity());
  stats.set_update_ms(-1);
  stats.set_memory_used_mib(std::numeric_limits<std::uint64_t>::max());
  stats.set_temperature_celsius(std::numeric_limits<std::int32_t>::min());
  stats.set_pcie_replays(std::numeric_limits<std::uint64_t>::max());
  for (int i = 0; i < 100; ++i) stats.add_slowdowns(std::string(1000, 'y'));
  const GpuReport r = from_wire(stats);
  EXPECT_EQ(r.name.size(), kMaxGpuWordBytes);
  EXPECT_EQ(r.uuid.size(), kMaxGpuWordBytes);
  EXPECT_FALSE(r.utilization.has_value());
  EXPECT_EQ(r.memory_utilization, 1);
  EXPECT_EQ(r.power_watts, 0);
  EXPECT_FALSE(r.compute_ms.has_value());
  EXPECT_EQ(r.update_ms, 0);
  EXPECT_EQ(r.memory_used_mib, kMaxCount);
  EXPECT_EQ(r.temperature_celsius, -1000);
  EXPECT_EQ(r.pcie_replays, kMaxCount);
  ASSERT_EQ(r.slowdowns.size(), 8u);
  EXPECT_EQ(r.slowdowns[7].size(), kMaxGpuWordBytes);
}

TEST(ServerLoadTest, RatesAreOfWholeWindows) {
  ServerLoad load;
  EXPECT_FALSE(load.report().has_value());
  load.add(stats(100, 1000, 500), TimePoint(milliseconds(0)));
  EXPECT_EQ(load.report()->load, 0);
  load.add(stats(400, 9000, 500), TimePoint(milliseconds(500)));
  EXPECT_EQ(load.report()->load, 0) << "half a window tells too little";
  EXPECT_EQ(load.report()->bytes_received, 9000u);
  load.add(stats(600, 3000, 2500), TimePoint(milliseconds(2000)));
  EXPECT_DOUBLE_EQ(load.report()->load, 0.25);
  EXPECT_DOUBLE_EQ(load.report()->bytes_per_second, 2000);
}

TEST(ServerLoadTest, CountsThatGoBackBeginAnew) {
  ServerLoad load;
  load.add(stats(900, 1000, 500), TimePoint(milliseconds(0)));
  load.add(stats(100, 10, 0), TimePoint(milliseconds(1500)));
  EXPECT_EQ(load.report()->load, 0);
  load.add(stats(600, 10, 0), TimePoint(milliseconds(2500)));
  EXPECT_DOUBLE_EQ(load.report()->load, 0.5);
}

TEST(ServerLoadTest, WhatIsSentIsBroughtIntoRange) {
  v1::ServerStats s = stats(-5, std::numeric_limits<std::uint64_t>::max(), 0);
  s.set_queue(-1);
  s.set_updates(std::numeric_limits<std::int64_t>::max());
  s.set_row_bytes(std::numeric_limits<std::uint64_t>::max());
  s.set_rows_evicted(-7);
  s.set_row_hits(9);
  for (int i = 0; i < 20; ++i) s.add_hottest()->set_table(std::string(200, 'x'));
  ServerLoad load;
  load.add(s, TimePoint(milliseconds(0)));
  EXPECT_EQ(load.report()->queue, 0);
  EXPECT_EQ(load.report()->updates, kMaxCount);
  EXPECT_EQ(load.report()->row_bytes, static_cast<std::uint64_t>(kMaxCount));
  EXPECT_EQ(load.report()->rows_evicted, 0);
  EXPECT_EQ(load.report()->row_hits, 9);
  ASSERT_EQ(load.report()->hottest.size(), 8u);
  EXPECT_EQ(load.report()->hottest[0].table.size(), kMaxTableBytes);

  v1::StalenessStats staleness;
  staleness.set_mean(std::nan(""));
  staleness.set_max(-3);
  staleness.set_dropped(7);
  for (int i = 0; i < 100; ++i) staleness.add_histogram(-i);
  const StalenessReport r = from_wire(staleness);
  EXPECT_EQ(r.mean, 0);
  EXPECT_EQ(r.max, 0);
  EXPECT_EQ(r.dropped, 7);
  EXPECT_EQ(r.histogram.size(), 32u);
  EXPECT_EQ(r.histogram[5], 0);
}

}  // namespace
}  // namespace paceline::coordinator
