#include "runtime/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/status.h"
#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::optimizer {
namespace {

bool uses_moments(const v1::OptimizerSpec& spec) {
  return spec.type() != v1::OptimizerSpec::SGD;
}

absl::Status out_of_range(std::string_view field, double value, std::string_view must) {
  return absl::InvalidArgumentError(str_cat("optimizer.", field, " is ", value, " and must be ", must));
}

absl::Status check_fraction(std::string_view field, double value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return out_of_range(field, value, "at least 0 and below 1");
}

absl::Status check_not_negative(std::string_view field, double value) {
  if (value >= 0 && std::isfinite(value)) return absl::OkStatus();
  return out_of_range(field, value, "finite and not negative");
}

absl::Status check(const v1::OptimizerSpec& spec) {
  if (!(spec.learning_rate() > 0) || !std::isfinite(spec.learning_rate())) {
    return out_of_range("learningRate", spec.learning_rate(), "finite and above 0");
  }
  PL_RETURN_IF_ERROR(check_not_negative("weightDecay", spec.weight_decay()));
  PL_RETURN_IF_ERROR(check_not_negative("clipNorm", spec.clip_norm()));
  if (!uses_moments(spec)) {
    PL_RETURN_IF_ERROR(check_fraction("momentum", spec.momentum()));
    if (spec.nesterov() && spec.momentum() == 0) return out_of_range("momentum", 0, "above 0 with nesterov");
    return absl::OkStatus();
  }
  PL_RETURN_IF_ERROR(check_fraction("beta1", spec.beta1()));
  PL_RETURN_IF_ERROR(check_fraction("beta2", spec.beta2()));
  // As a float: smaller ones would divide the zeros of the padding by zero.
  if (!(static_cast<float>(spec.epsilon()) > 0) || !std::isfinite(spec.epsilon())) {
    return out_of_range("epsilon", spec.epsilon(), "finite and above 0");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Optimizer> Optimizer::create(const v1::OptimizerSpec& spec,
                                            const tensor::ParameterLayout& layout) {
  PL_RETURN_IF_ERROR(check(spec));
  return Optimizer(spec, layout);
}

Optimizer::Optimizer(const v1::OptimizerSpec& spec, const tensor::ParameterLayout& layout)
    : spec_(spec), elements_(layout.elements), ranges_(ranges_of(layout)) {
  if (uses_moments(spec) || spec.momentum() > 0) first_.assign(elements_, 0.0f);
  if (uses_moments(spec)) second_.assign(elements_, 0.0f);
}

std::vector<Optimizer::Range> Optimizer::ranges_of(const tensor::ParameterLayout& layout) {
  std::vector<Range> ranges;
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

absl::StatusOr<StepReport> Optimizer::step(std::span<float> weights, std::span<const float> gradient,
                                           double learning_rate) {
  PL_CHECK(weights.size() == elements_ && gradient.size() == elements_,
           "weights and gradient are as long as the layout");
  StepReport report;
  float clip = 1;
  if (spec_.clip_norm() > 0) {
    const double norm = std::sqrt(tensor::cpu::kernels().squared_norm(gradient.data(), gradient.size()));
    if (!std::isfinite(norm)) {
      return absl::InvalidArgumentError(
          str_cat("the gradient's norm is ", norm, " at optimizer step ", steps_ + 1,
                  ": the training diverged; lower learningRate or clipNorm, or look at the data"));
    }
    report.gradient_norm = norm;
    report.clipped = norm > spec_.clip_norm();
    if (report.clipped) clip = static_cast<float>(spec_.clip_norm() / norm);
  }
  ++steps_;
  for (const Range& range : ranges_) {
    if (uses_moments(spec_)) {
      step_adam(range, weights.data(), gradient.data(), clip, learning_rate);
    } else {
      step_sgd(range, weights.data(), gradient.data(), clip, learning_rate);
    }
  }
  return report;
}

void Optimizer::step_sgd(const Range& range, float* weights, const float* gradient, float clip, double rate) {
  const tensor::cpu::SgdStep step{.clip = clip,
                                  .learning_rate = static_cast<float>(rate),
                                  .momentum = static_cast<float>(spec_.momentum()),
                                  .weight_decay = range.decay ? static_cast<float>(spec_.weight_decay()) : 0,
                                  .nesterov = spec_.nesterov()};
  float* momentum = first_.empty() ? nullptr : first_.data() + range.begin;
  tensor::cpu::kernels().sgd(step, weights + range.begin, momentum, gradient + range.begin,
                             range.end - range.begin);
}

void Optimizer::step_adam(const Range& range, float* weights, const float* gradient, float clip,
                          double rate) {
  const double decay = range.decay ? spec_.weight_decay() : 0;
  const bool decoupled = spec_.type() == v1::OptimizerSpec::ADAMW;
  const auto t = static_cast<double>(steps_);
  const double correction1 = 1 - std::pow(spec_.beta1(), t);
  const double correction2 = 1 - std::pow(spec_.beta2(), t);
  const tensor::cpu::AdamStep step{.clip = clip,
                                   .step_size = static_cast<float>(rate / correction1),
                                   .beta1 = static_cast<float>(spec_.beta1()),
                                   .one_minus_beta1 = static_cast<float>(1 - spec_.beta1()),
                                   .beta2 = static_cast<float>(spec_.beta2()),
                                   .one_minus_beta2 = static_cast<float>(1 - spec_.beta2()),
                                   .root_correction = static_cast<float>(1 / std::sqrt(correction2)),
                                   .epsilon = static_cast<float>(spec_.epsilon()),
                                   .weight_decay = decoupled ? 0 : static_cast<float>(decay),
                                   .shrink = decoupled ? static_cast<float>(1 - rate * decay) : 1};
  tensor::cpu::kernels().adam(step, weights + range.begin, first_.data() + range.begin,
                              second_.data() + range.begin, gradient + range.begin, range.end - range.begin);
}

std::vector<StateVector> Optimizer::state() {
  std::vector<StateVector> vectors;
  if (!first_.empty()) vectors.push_back({uses_moments(spec_) ? "exp_avg" : "momentum", first_});
  if (!second_.empty()) vectors.push_back({"exp_avg_sq", second_});
  return vectors;
}

}  // namespace paceline::optimizer
