#pragma once

// The learning rate at a step. Pure.

#include <cstdint>

#include "proto/paceline/v1/training.pb.h"

namespace paceline::optimizer {

// The rate that step `step` (the first is 0) of `total_steps` trains with, for `workers` training members:
//
//   base    = learning_rate * (scale_by_workers ? workers : 1)          linear scaling, Goyal et al. 2017
//   warm-up   base * (step + 1) / warmup_steps                          while step < warmup_steps
//   constant  base
//   step      base * step_factor ^ floor(step / step_every)
//   cosine    base * (f + (1 - f) * (1 + cos(pi * t)) / 2)              f = final_fraction, t = the part done
//   of the steps
//                                                                       after the warm-up; at the last step t
//                                                                       = 1
// A step past the last has the last one's rate. REQUIRES: step >= 0, total_steps >= 1, workers >= 1;
// step_every >= 1 for STEP.
double learning_rate(const v1::OptimizerSpec& spec, std::int64_t step, std::int64_t total_steps,
                     std::int64_t workers);

}  // namespace paceline::optimizer
