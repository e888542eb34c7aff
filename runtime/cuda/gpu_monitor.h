#pragma once

// How a GPU is: what NVIDIA's management library (libnvidia-ml.so.1, NVML) says of it, opened at run time. It
// stops nothing on the GPU; a reading takes milliseconds, of one thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace paceline::cuda {

// What a GPU does not tell is empty. Counters are since the driver was loaded, but for Xids.
struct GpuReading {
  std::optional<double> utilization;         // 0 to 1: of the last second or so, when a kernel ran
  std::optional<double> memory_utilization;  // 0 to 1: when memory was read or written
  std::optional<std::uint64_t> memory_used_bytes, memory_total_bytes;  // by all its processes
  std::optional<std::uint32_t> sm_clock_mhz, most_sm_clock_mhz;
  std::optional<std::uint32_t> memory_clock_mhz, most_memory_clock_mhz;
  std::optional<std::int32_t> temperature_celsius;
  std::optional<double> power_watts, power_limit_watts;
  std::optional<std::uint64_t> throttle_reasons;  // a set of nvml.h's nvmlClocksEventReason...
  std::optional<std::uint64_t> corrected_ecc_errors, uncorrected_ecc_errors;
  std::optional<std::uint64_t> pcie_replays;
  std::uint64_t xids = 0;  // errors that the driver told since the monitor was opened
  std::uint64_t last_xid = 0;
  absl::Status trouble;  // UNAVAILABLE, INTERNAL: the GPU, or its driver, is gone; what it told is there
};

// Of the reasons those that slow a GPU down, in words: "power cap", "thermal (software)", "thermal
// (hardware)", "power brake", "hardware slowdown". A GPU that is idle, or whose clocks somebody has set, is
// not slowed down.
std::vector<std::string> slowdowns(std::uint64_t throttle_reasons);

class GpuMonitor {
 public:
  // Of the GPU with this uuid ("GPU-...", DeviceFacts). Of a MIG instance memory is its own, its utilization
  // is not told, and Xids of other instances do not count; all else is that of the whole GPU. Opens the
  // system's library, or `path`. NOT_FOUND: there is none, or no such GPU; UNAVAILABLE: the driver is not
  // loaded; INTERNAL: what NVML says.
  static absl::StatusOr<std::unique_ptr<GpuMonitor>> open(const std::string& uuid,
                                                          const std::string& path = "");
  virtual ~GpuMonitor() = default;

  // What can't be told is left out.
  virtual GpuReading read() = 0;
};

}  // namespace paceline::cuda
