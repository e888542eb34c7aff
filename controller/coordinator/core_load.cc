#include "controller/coordinator/core_load.h"

#include <algorithm>
#include <cmath>

#include "controller/coordinator/core_hello.h"
#include "controller/coordinator/core_progress.h"

namespace paceline::coordinator {

namespace {

std::int64_t sane(std::int64_t count) {
  return std::clamp<std::int64_t>(count, 0, kMaxCount);
}
std::uint64_t sane_bytes(std::uint64_t bytes) {
  return std::min<std::uint64_t>(bytes, kMaxCount);
}

std::optional<std::int64_t> sane_if(bool has, std::uint64_t count) {
  if (!has) return std::nullopt;
  return static_cast<std::int64_t>(sane_bytes(count));
}
// Within [0, most]; what is no number is not told.
std::optional<double> sane_if(bool has, double value, double most) {
  if (!has || !std::isfinite(value)) return std::nullopt;
  return std::clamp(value, 0.0, most);
}

}  // namespace

void ServerLoad::add(const v1::ServerStats& stats, TimePoint now) {
  if (!report_) report_.emplace();
  ServerReport& r = *report_;
  r.updates = sane(stats.updates());
  r.gradients = sane(stats.gradients());
  r.bytes_received = sane_bytes(stats.bytes_received());
  r.bytes_sent = sane_bytes(stats.bytes_sent());
  r.queue = sane(stats.queue());
  r.rows = sane(stats.rows());
  r.row_bytes = sane_bytes(stats.row_bytes());
  r.row_hits = sane(stats.row_hits());
  r.row_misses = sane(stats.row_misses());
  r.rows_created = sane(stats.rows_created());
  r.rows_evicted = sane(stats.rows_evicted());
  r.hottest.clear();
  for (int i = 0; i < std::min(stats.hottest_size(), kMaxHotRows); ++i) {
    const v1::HotRow& row = stats.hottest(i);
    r.hottest.push_back({cut(row.table(), kMaxTableBytes), row.id(), sane(row.pulls())});
  }
  const std::int64_t busy_ns = sane(stats.busy_ns());
  const std::uint64_t bytes = r.bytes_received + r.bytes_sent;
  // Counts that go back are another process's.
  const bool begins = !since_ || busy_ns < busy_ns_ || bytes < bytes_;
  if (!begins && now - *since_ < kLoadWindow) return;
  if (!begins) {
    const double seconds = std::chrono::duration<double>(now - *since_).count();
    r.load = std::clamp(static_cast<double>(busy_ns - busy_ns_) * 1e-9 / seconds, 0.0, 1.0);
    r.bytes_per_second = static_cast<double>(bytes - bytes_) / seconds;
  }
  since_ = now;
  busy_ns_ = busy_ns;
  bytes_ = bytes;
}

StalenessReport from_wire(const v1::StalenessStats& stats) {
  StalenessReport r;
  r.applied = sane(stats.applied());
  r.dropped = sane(stats.dropped());
  for (int i = 0; i < std::min(stats.histogram_size(), kMaxStalenessBuckets); ++i)
    r.histogram.push_back(sane(stats.histogram(i)));
  r.mean = std::isfinite(stats.mean()) ? std::clamp(stats.mean(), 0.0, 1e15) : 0;
  r.max = sane(stats.max());
  r.wait = Duration(std::clamp<std::int64_t>(stats.wait_ns(), 0, kMaxCount));
  return r;
}

GpuReport from_wire(const v1::GpuStats& stats) {
  constexpr double kMostWatts = 1e6;
  constexpr double kMostMs = 1e9;
  constexpr std::int32_t kMostCelsius = 1000;
  GpuReport r;
  r.name = cut(stats.name(), kMaxGpuWordBytes);
  r.index = sane_if(stats.has_index(), stats.index());
  r.uuid = cut(stats.uuid(), kMaxGpuWordBytes);
  r.compute_ms = sane_if(stats.has_compute_ms(), stats.compute_ms(), kMostMs);
  r.update_ms = sane_if(stats.has_update_ms(), stats.update_ms(), kMostMs);
  r.utilization = sane_if(stats.has_utilization(), stats.utilization(), 1);
  r.memory_utilization = sane_if(stats.has_memory_utilization(), stats.memory_utilization(), 1);
  r.memory_used_mib = sane_if(stats.has_memory_used_mib(), stats.memory_used_mib());
  r.memory_total_mib = sane_if(stats.has_memory_total_mib(), stats.memory_total_mib());
  r.sm_clock_mhz = sane_if(stats.has_sm_clock_mhz(), stats.sm_clock_mhz());
  r.most_sm_clock_mhz = sane_if(stats.has_most_sm_clock_mhz(), stats.most_sm_clock_mhz());
  r.memory_clock_mhz = sane_if(stats.has_memory_clock_mhz(), stats.memory_clock_mhz());
  r.most_memory_clock_mhz = sane_if(stats.has_most_memory_clock_mhz(), stats.most_memory_clock_mhz());
  if (stats.has_temperature_celsius())
    r.temperature_celsius = std::clamp(stats.temperature_celsius(), -kMostCelsius, kMostCelsius);
  r.power_watts = sane_if(stats.has_power_watts(), stats.power_watts(), kMostWatts);
  r.power_limit_watts = sane_if(stats.has_power_limit_watts(), stats.power_limit_watts(), kMostWatts);
  for (int i = 0; i < std::min(stats.slowdowns_size(), kMaxSlowdowns); ++i)
    r.slowdowns.push_back(cut(stats.slowdowns(i), kMaxGpuWordBytes));
  r.corrected_ecc_errors = sane_if(stats.has_corrected_ecc_errors(), stats.corrected_ecc_errors());
  r.uncorrected_ecc_errors = sane_if(stats.has_uncorrected_ecc_errors(), stats.uncorrected_ecc_errors());
  r.pcie_replays = sane_if(stats.has_pcie_replays(), stats.pcie_replays());
  r.xids = static_cast<std::int64_t>(sane_bytes(stats.xids()));
  r.last_xid = static_cast<std::int64_t>(sane_bytes(stats.last_xid()));
  return r;
}

}  // namespace paceline::coordinator
