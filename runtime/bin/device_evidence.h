#pragma once

// What a member's heartbeats say of the device that it computes on: of a GPU, which one it is, how it is
// (gpu_evidence.h) and how long it is at a step (step_evidence.h); of processors nothing.

#include <memory>

#include "base/log.h"
#include "runtime/bin/open_device.h"
#include "runtime/member/progress.h"

namespace paceline {

class GpuEvidence;

class DeviceEvidence {
 public:
  // `progress` outlives it.
  DeviceEvidence(member::Progress& progress, const Logger& logger);
  ~DeviceEvidence();
  DeviceEvidence(const DeviceEvidence&) = delete;
  DeviceEvidence& operator=(const DeviceEvidence&) = delete;

  // From now on. Where the machine does not tell how a GPU is, the log says why, and training goes on
  // without.
  void watch(const OpenedDevice& device);

 private:
  member::Progress& progress_;
  const Logger logger_;
  std::shared_ptr<GpuEvidence> gpu_;
  std::shared_ptr<tensor::DeviceTimer::Sums> times_;
};

}  // namespace paceline
