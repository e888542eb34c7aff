#include "runtime/optimizer/step_terms.h"

#include <cmath>

#include "base/check.h"
#include "base/status.h"

namespace paceline::optimizer {

bool uses_moments(const v1::OptimizerSpec& spec) {
  return spec.type() == v1::OptimizerSpec::ADAM || spec.type() == v1::OptimizerSpec::ADAMW;
}

std::vector<std::string_view> state_names(const v1::OptimizerSpec& spec) {
  if (uses_moments(spec)) return {"exp_avg", "exp_avg_sq"};
  if (spec.type() == v1::OptimizerSpec::ADAGRAD) return {"sum"};
  if (spec.momentum() > 0) return {"momentum"};
  return {};
}

std::vector<DecayRange> decay_ranges(const tensor::ParameterLayout& layout) {
  std::vector<DecayRange> ranges;
  for (const tensor::Parameter& parameter : layout.parameters) {
    PL_CHECK(ranges.empty() || parameter.offset >= ranges.back().end, "parameters lie in order");
    if (!ranges.empty()) ranges.back().end = parameter.offset;
    if (ranges.empty() || ranges.back().decay != parameter.decay) {
      ranges.push_back({.begin = parameter.offset, .decay = parameter.decay});
    }
    ranges.back().end = parameter.offset + parameter.count;
  }
  PL_CHECK(ranges.empty() || ranges.back().end <= layout.elements, "parameters lie inside the vector");
  return ranges;
}

StepTerms step_terms(const v1::OptimizerSpec& spec, double learning_rate, std::int64_t step) {
  if (!uses_moments(spec)) return {.rate = learning_rate};
  const auto t = static_cast<double>(step);
  return {.rate = learning_rate,
          .correction1 = 1 - std::pow(spec.beta1(), t),
          .correction2 = 1 - std::pow(spec.beta2(), t)};
}

tensor::cpu::SgdStep sgd_step(const v1::OptimizerSpec& spec, const StepTerms& terms, bool decays) {
  return {.learning_rate = static_cast<float>(terms.rate),
          .momentum = static_cast<float>(spec.momentum()),
          .weight_decay = decays ? static_cast<float>(spec.weight_decay()) : 0,
          .nesterov = spec.nesterov()};
}

tensor::cpu::AdamStep adam_step(const v1::OptimizerSpec& spec, const StepTerms& terms, bool decays) {
  const double decay = decays ? spec.weight_decay() : 0;
  const bool decoupled = spec.type() == v1::OptimizerSpec::ADAMW;
  return {.step_size = static_cast<float>(terms.rate / terms.correction1),
          .beta1 = static_cast<float>(spec.beta1()),
          .one_minus_beta1 = static_cast<float>(1 - spec.beta1()),
          .beta2 = static_cast<float>(spec.beta2()),
          .one_minus_beta2 = static_cast<float>(1 - spec.beta2()),
          .root_correction = static_cast<float>(1 / std::sqrt(terms.correction2)),
          .epsilon = static_cast<float>(spec.epsilon()),
          .weight_decay = decoupled ? 0 : static_cast<float>(decay),
          .shrink = decoupled ? static_cast<float>(1 - terms.rate * decay) : 1};
}

tensor::cpu::AdagradStep adagrad_step(const v1::OptimizerSpec& spec, const StepTerms& terms, bool decays) {
  return {.learning_rate = static_cast<float>(terms.rate),
          .epsilon = static_cast<float>(spec.epsilon()),
          .weight_decay = decays ? static_cast<float>(spec.weight_decay()) : 0};
}

absl::Status diverged(double norm, std::int64_t step) {
  return absl::InvalidArgumentError(
      str_cat("the gradient's norm is ", norm, " at optimizer step ", step,
              ": the training diverged; lower learningRate or clipNorm, or look at the data"));
}

}  // namespace paceline::optimizer
