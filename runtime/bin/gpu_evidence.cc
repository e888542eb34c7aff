#include "runtime/bin/gpu_evidence.h"

#include <utility>

#include "base/text.h"
#include "proto/telemetry.h"

namespace paceline {

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
  cuda::GpuReading reading = monitor_->read();
  if (!reading.trouble.ok() && !troubled_) {
    logger_.warning(
        str_cat("how the GPU is can't be told, which is tried again: ", reading.trouble.message()));
  }
  troubled_ = !reading.trouble.ok();
  reading.gpu.name = name_;
  state_.lock()->newest = std::move(reading.gpu);
}

void GpuEvidence::add_to(v1::Heartbeat& heartbeat) {
  to_wire(state_.lock()->newest, *heartbeat.mutable_gpu());
}

}  // namespace paceline
