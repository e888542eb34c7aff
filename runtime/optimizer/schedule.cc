#include "runtime/optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace paceline::optimizer {
namespace {

double cosine(double final_fraction, std::int64_t step, std::int64_t warmup, std::int64_t total) {
  const std::int64_t last = total - 1 - warmup;
  const double t = last > 0 ? static_cast<double>(step - warmup) / static_cast<double>(last) : 0.0;
  return final_fraction + (1 - final_fraction) * 0.5 * (1 + std::cos(std::numbers::pi * t));
}

}  // namespace

double learning_rate(const v1::OptimizerSpec& spec, std::int64_t step, std::int64_t total_steps,
                     std::int64_t workers) {
  PL_CHECK(step >= 0 && total_steps >= 1 && workers >= 1, "a schedule needs a step, a length and a worker");
  step = std::min(step, total_steps - 1);
  const v1::ScheduleSpec& schedule = spec.schedule();
  const double scale = schedule.scale_by_workers() ? static_cast<double>(workers) : 1.0;
  const double base = spec.learning_rate() * scale;
  const std::int64_t warmup = schedule.warmup_steps();
  if (step < warmup) return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
  switch (schedule.type()) {
    case v1::ScheduleSpec::STEP:
      PL_CHECK(schedule.step_every() >= 1, "a step schedule needs stepEvery >= 1");
      return base * std::pow(schedule.step_factor(), static_cast<double>(step / schedule.step_every()));
    case v1::ScheduleSpec::COSINE:
      return base * cosine(schedule.final_fraction(), step, warmup, total_steps);
    default:
      return base;
  }
}

}  // namespace paceline::optimizer
