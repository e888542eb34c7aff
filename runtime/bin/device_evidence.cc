#include "runtime/bin/device_evidence.h"

#include <utility>

#include "base/status.h"

#if defined(PACELINE_WITH_CUDA)
#include "runtime/bin/gpu_evidence.h"
#endif

namespace paceline {

DeviceEvidence::DeviceEvidence(member::Progress& progress, const Logger& logger)
    : progress_(progress), logger_(logger) {}

DeviceEvidence::~DeviceEvidence() {
  progress_.set_device_extra(nullptr);
}

#if defined(PACELINE_WITH_CUDA)

void DeviceEvidence::watch(const OpenedDevice& device) {
  if (device.gpu.empty()) return;
  auto monitor = cuda::GpuMonitor::open(device.gpu_uuid);
  if (!monitor.ok()) {
    logger_.info(str_cat("nothing tells how the GPU is: ", monitor.status().message()));
    return;
  }
  gpu_ = std::make_shared<GpuEvidence>(device.gpu, *std::move(monitor), logger_);
  progress_.set_device_extra([gpu = gpu_](v1::Heartbeat& heartbeat) { gpu->tell(heartbeat); });
}

#else

class GpuEvidence {};

void DeviceEvidence::watch(const OpenedDevice&) {}

#endif

}  // namespace paceline
