#include "runtime/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/status.h"
#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::optimizer {
namespace {

bool uses_moments(const v1::OptimizerSpec& spec) {
  return spec.type() == v1::OptimizerSpec::ADAM || spec.type() == v1::OptimizerSpec::ADAMW;
}

// Of the first vector of state; empty: there is none.
std::string_view first_state(const v1::OptimizerSpec& spec) {
  if (uses_moments(spec)) return "exp_avg";
  if (spec.type() == v1::OptimizerSpec::ADAGRAD) return "sum";
  return spec.momentum() > 0 ? "momentum" : "";
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
  if (spec.type() == v1::OptimizerSpec::SGD) {
    PL_RETURN_IF_ERROR(check_fraction("momentum", spec.momentum()));
    if (spec.nesterov() && spec.momentum() == 0) return out_of_range("momentum", 0, "above 0 with nesterov");
    return absl::OkStatus();
  }
  if (uses_moments(spec)) {
    PL_RETURN_IF_ERROR(check_fraction("beta1", spec.beta1()));
    PL_RETURN_IF_ERROR(check_fraction("beta2", spec.beta2()));
  }
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
  if (!first_state(spec).empty()) first_.assign(elements_, 0.0f);
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
  begin_step(learning_rate);
  step_part(0, weights, gradient, clip);
  return report;
}

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  rate_ = learning_rate;
  if (!uses_moments(spec_)) return;
  const auto t = static_cast<double>(steps_);
  correction1_ = 1 - std::pow(spec_.beta1(), t);
  correction2_ = 1 - std::pow(spec_.beta2(), t);
}

void Optimizer::step_part(std::size_t begin, std::span<float> weights, std::span<const float> gradient,
                          float factor) {
  const std::size_t end = begin + weights.size();
  PL_CHECK(end <= elements_ && gradient.size() == weights.size(), "a part lies inside the vector");
  auto range = std::partition_point(ranges_.begin(), ranges_.end(),
                                    [&](const Range& each) { return each.end <= begin; });
  for (; range != ranges_.end() && range->begin < end; ++range) {
    const std::size_t from = std::max(begin, range->begin), to = std::min(end, range->end);
    const Part part{.begin = from,
                    .count = to - from,
                    .decay = range->decay,
                    .weights = weights.data() + (from - begin),
                    .gradient = gradient.data() + (from - begin),
                    .factor = factor};
    if (uses_moments(spec_)) {
      step_adam(part);
    } else if (spec_.type() == v1::OptimizerSpec::ADAGRAD) {
      step_adagrad(part);
    } else {
      step_sgd(part);
    }
  }
}

void Optimizer::step_sgd(const Part& part) {
  const tensor::cpu::SgdStep step{.clip = part.factor,
                                  .learning_rate = static_cast<float>(rate_),
                                  .momentum = static_cast<float>(spec_.momentum()),
                                  .weight_decay = part.decay ? static_cast<float>(spec_.weight_decay()) : 0,
                                  .nesterov = spec_.nesterov()};
  float* momentum = first_.empty() ? nullptr : first_.data() + part.begin;
  tensor::cpu::kernels().sgd(step, part.weights, momentum, part.gradient, part.count);
}

void Optimizer::step_adam(const Part& part) {
  const double decay = part.decay ? spec_.weight_decay() : 0;
  const bool decoupled = spec_.type() == v1::OptimizerSpec::ADAMW;
  const tensor::cpu::AdamStep step{.clip = part.factor,
                                   .step_size = static_cast<float>(rate_ / correction1_),
                                   .beta1 = static_cast<float>(spec_.beta1()),
                                   .one_minus_beta1 = static_cast<float>(1 - spec_.beta1()),
                                   .beta2 = static_cast<float>(spec_.beta2()),
                                   .one_minus_beta2 = static_cast<float>(1 - spec_.beta2()),
                                   .root_correction = static_cast<float>(1 / std::sqrt(correction2_)),
                                   .epsilon = static_cast<float>(spec_.epsilon()),
                                   .weight_decay = decoupled ? 0 : static_cast<float>(decay),
                                   .shrink = decoupled ? static_cast<float>(1 - rate_ * decay) : 1};
  tensor::cpu::kernels().adam(step, part.weights, first_.data() + part.begin, second_.data() + part.begin,
                              part.gradient, part.count);
}

void Optimizer::step_adagrad(const Part& part) {
  const tensor::cpu::AdagradStep step{
      .clip = part.factor,
      .learning_rate = static_cast<float>(rate_),
      .epsilon = static_cast<float>(spec_.epsilon()),
      .weight_decay = part.decay ? static_cast<float>(spec_.weight_decay()) : 0};
  tensor::cpu::kernels().adagrad(step, part.weights, first_.data() + part.begin, part.gradient, part.count);
}

std::vector<StateVector> Optimizer::state() {
  std::vector<StateVector> vectors;
  if (!first_.empty()) vectors.push_back({first_state(spec_), first_});
  if (!second_.empty()) vectors.push_back({"exp_avg_sq", second_});
  return vectors;
}

}  // namespace paceline::optimizer
