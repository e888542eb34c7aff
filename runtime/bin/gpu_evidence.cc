#include "runtime/bin/gpu_evidence.h"

#include <utility>

#include "base/text.h"

namespace paceline {

v1::GpuStats to_wire(const std::string& name, const cuda::GpuReading& reading) {
  v1::GpuStats stats;
  stats.set_name(name);
  if (reading.utilization) stats.set_utilization(*reading.utilization);
  if (reading.memory_utilization) stats.set_memory_utilization(*reading.memory_utilization);
  if (reading.memory_used_bytes) stats.set_memory_used_mib(*reading.memory_used_bytes >> 20);
  if (reading.memory_total_bytes) stats.set_memory_total_mib(*reading.memory_total_bytes >> 20);
  if (reading.sm_clock_mhz) stats.set_sm_clock_mhz(*reading.sm_clock_mhz);
  if (reading.most_sm_clock_mhz) stats.set_most_sm_clock_mhz(*reading.most_sm_clock_mhz);
  if (reading.memory_clock_mhz) stats.set_memory_clock_mhz(*reading.memory_clock_mhz);
  if (reading.most_memory_clock_mhz) stats.set_most_memory_clock_mhz(*reading.most_memory_clock_mhz);
  if (reading.temperature_celsius) stats.set_temperature_celsius(*reading.temperature_celsius);
  if (reading.power_watts) stats.set_power_watts(*reading.power_watts);
  if (reading.power_limit_watts) stats.set_power_limit_watts(*reading.power_limit_watts);
  if (reading.throttle_reasons) {
    for (std::string& words : cuda::slowdowns(*reading.throttle_reasons))
      stats.add_slowdowns(std::move(words));
  }
  if (reading.corrected_ecc_errors) stats.set_corrected_ecc_errors(*reading.corrected_ecc_errors);
  if (reading.uncorrected_ecc_errors) stats.set_uncorrected_ecc_errors(*reading.uncorrected_ecc_errors);
  if (reading.pcie_replays) stats.set_pcie_replays(*reading.pcie_replays);
  stats.set_xids(reading.xids);
  stats.set_last_xid(reading.last_xid);
  return stats;
}

GpuEvidence::GpuEvidence(std::string name, std::unique_ptr<cuda::GpuMonitor> monitor, Logger logger,
                         Duration every)
    : name_(std::move(name)), monitor_(std::move(monitor)), logger_(std::move(logger)), every_(every) {
  look();
  thread_ = std::jthread([this] { watch(); });
}

GpuEvidence::~GpuEvidence() {
  state_.lock()->stopped = true;
}

void GpuEvidence::watch() {
  while (!state_.lock_when([](const State& state) { return state.stopped; }, every_)->stopped) look();
}

void GpuEvidence::look() {
  const cuda::GpuReading reading = monitor_->read();
  if (!reading.trouble.ok() && !troubled_) {
    logger_.warning(
        str_cat("how the GPU is can't be told, which is tried again: ", reading.trouble.message()));
  }
  troubled_ = !reading.trouble.ok();
  v1::GpuStats stats = to_wire(name_, reading);
  state_.lock()->newest = std::move(stats);
}

void GpuEvidence::tell(v1::Heartbeat& heartbeat) {
  *heartbeat.mutable_gpu() = state_.lock()->newest;
}

}  // namespace paceline
