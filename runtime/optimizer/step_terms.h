#pragma once

// What the optimizer's kernels take, of the spec, the learning rate and the number of the step: the same for
// those of the host (optimizer.h) and of GPUs (gpu/). Pure.

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/tensor/cpu/kernels/kernels.h"
#include "runtime/tensor/program.h"

namespace paceline::optimizer {

// Names of the state's vectors (optimizer.h), in their order: none, one or two.
std::vector<std::string_view> state_names(const v1::OptimizerSpec& spec);
bool uses_moments(const v1::OptimizerSpec& spec);  // Adam, AdamW

// Neighbouring parameters of equal decay are one range; padding belongs to the range before it (it is zero
// and stays zero).
struct DecayRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool decay = false;
};
std::vector<DecayRange> decay_ranges(const tensor::ParameterLayout& layout);

// Of one step, the first being 1.
struct StepTerms {
  double rate = 0;
  double correction1 = 1, correction2 = 1;  // 1 - beta^step
};
StepTerms step_terms(const v1::OptimizerSpec& spec, double learning_rate, std::int64_t step);

// For a range that decays, or does not; `clip` is 1.
tensor::cpu::SgdStep sgd_step(const v1::OptimizerSpec& spec, const StepTerms& terms, bool decays);
tensor::cpu::AdamStep adam_step(const v1::OptimizerSpec& spec, const StepTerms& terms, bool decays);
tensor::cpu::AdagradStep adagrad_step(const v1::OptimizerSpec& spec, const StepTerms& terms, bool decays);

// INVALID_ARGUMENT: step `step` has a gradient whose norm is `norm`, and not finite.
absl::Status diverged(double norm, std::int64_t step);

}  // namespace paceline::optimizer
