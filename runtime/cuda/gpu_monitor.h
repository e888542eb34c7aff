#pragma once

// How a GPU is: what NVIDIA's management library (libnvidia-ml.so.1, NVML) says of it, opened at run time. It
// stops nothing on the GPU; a reading takes milliseconds, of one thread at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/telemetry.h"

namespace paceline::cuda {

struct GpuReading {
  GpuTelemetry
      gpu;  // without its name, number, uuid and times of a step; Xids are since the monitor was opened
  absl::Status trouble;  // UNAVAILABLE, INTERNAL: the GPU, or its driver, is gone; what it told is there
};

// The reasons (nvml.h's nvmlClocksEventReason...) that slow a GPU down, in words: "power cap", "thermal
// (software)", "thermal (hardware)", "power brake", "hardware slowdown". A GPU that is idle, or whose clocks
// somebody has set, is not slowed down.
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
