#include "runtime/bin/device_evidence.h"

#include <utility>

#include "base/status.h"

#if defined(PACELINE_WITH_CUDA)
#include "runtime/bin/gpu_evidence.h"
#include "runtime/bin/step_evidence.h"
#endif

namespace paceline {

DeviceEvidence::DeviceEvidence(member::Progress& progress, const Logger& logger)
    : progress_(progress), logger_(logger) {}

DeviceEvidence::~DeviceEvidence() {
  progress_.set_device_extra(nullptr);
  if (times_ == nullptr) return;
  const tensor::DeviceTimeSums times = *times_->lock();
  if (times.not_measured == 0) return;
  logger_.info(str_cat("how long the GPU was at a step is not known of ", times.not_measured, " of ",
                       times.steps + times.not_measured,
                       " steps: more were under way at once than are measured"));
}

#if defined(PACELINE_WITH_CUDA)

void DeviceEvidence::watch(const OpenedDevice& device) {
  if (device.gpu.empty()) return;
  auto monitor = cuda::GpuMonitor::open(device.gpu_uuid);
  if (monitor.ok()) {
    gpu_ = std::make_shared<GpuEvidence>(device.gpu, *std::move(monitor), logger_);
  } else {
    logger_.info(str_cat("nothing tells how the GPU is: ", monitor.status().message()));
  }
  times_ = device.compute.times;
  auto steps = std::make_shared<StepEvidence>(device.gpu, times_);
  const auto which = [index = device.gpu_index, uuid = device.gpu_uuid](v1::Heartbeat& heartbeat) {
    heartbeat.mutable_gpu()->set_index(static_cast<std::uint32_t>(index));
    heartbeat.mutable_gpu()->set_uuid(uuid);
  };
  progress_.set_device_extra([gpu = gpu_, steps, which](v1::Heartbeat& heartbeat) {
    if (gpu != nullptr) gpu->add_to(heartbeat);
    steps->add_to(heartbeat);
    which(heartbeat);
  });
}

#else

class GpuEvidence {};

void DeviceEvidence::watch(const OpenedDevice&) {}

#endif

}  // namespace paceline
