#include "runtime/bin/step_evidence.h"

namespace paceline {

namespace {

double mean_ms(Duration sum, std::int64_t steps) {
  return std::chrono::duration<double, std::milli>(sum).count() / static_cast<double>(steps);
}

}  // namespace

void StepEvidence::add_to(v1::Heartbeat& heartbeat) {
  const tensor::DeviceTimeSums now = *sums_->lock();
  const std::int64_t steps = now.steps - told_.steps;
  if (steps > 0) {
    compute_ms_ = mean_ms(now.times.passes - told_.times.passes, steps);
    update_ms_ = mean_ms(now.times.update - told_.times.update, steps);
    told_ = now;
  }
  v1::GpuStats& gpu = *heartbeat.mutable_gpu();
  gpu.set_name(name_);
  if (told_.steps == 0) return;
  gpu.set_compute_ms(compute_ms_);
  if (told_.times.update > Duration()) gpu.set_update_ms(update_ms_);
}

}  // namespace paceline
