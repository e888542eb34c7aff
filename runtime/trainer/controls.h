#pragma once

// The floats behind the gradient, which are summed over all members by the same exchange: so that the global
// loss and the wishes to stop, drain or save cost no collective of their own, and all members see the same
// after the same step. Pure.

#include <cstdint>
#include <span>

#include "runtime/trainer/step_machine.h"

namespace paceline::trainer {

// Floats behind the gradient. A multiple of 64 bytes, so that buckets stay aligned.
inline constexpr std::size_t kControls = 16;

struct Controls {
  double loss_sum = 0;  // over the samples; travels as a float
  Agreement wishes;     // summed: whether anybody wishes so
  // Samples of the step, at most 2^24 of all members: the float is exact.
  std::int64_t left_out = 0;
};

// REQUIRES: kControls floats.
inline void write_controls(const Controls& controls, std::span<float> out) {
  for (float& value : out) value = 0;
  out[0] = static_cast<float>(controls.loss_sum);
  out[1] = controls.wishes.stop ? 1.0F : 0.0F;
  out[2] = controls.wishes.drain ? 1.0F : 0.0F;
  out[3] = controls.wishes.save ? 1.0F : 0.0F;
  out[4] = static_cast<float>(controls.left_out);
}

inline Controls read_controls(std::span<const float> sums) {
  return {static_cast<double>(sums[0]),
          {.stop = sums[1] > 0, .drain = sums[2] > 0, .save = sums[3] > 0},
          static_cast<std::int64_t>(sums[4])};
}

}  // namespace paceline::trainer
