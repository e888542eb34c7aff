#include "runtime/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/status.h"
#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::optimizer {
namespace {

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
    : spec_(spec), elements_(layout.elements), ranges_(decay_ranges(layout)) {
  const std::size_t vectors = state_names(spec).size();
  if (vectors > 0) first_.assign(elements_, 0.0f);
  if (vectors > 1) second_.assign(elements_, 0.0f);
}

absl::StatusOr<StepReport> Optimizer::step(std::span<float> weights, std::span<const float> gradient,
                                           double learning_rate, double scale) {
  PL_CHECK(weights.size() == elements_ && gradient.size() == elements_,
           "weights and gradient are as long as the layout");
  StepReport report{.factor = static_cast<float>(scale)};
  if (spec_.clip_norm() > 0) {
    const double norm =
        scale * std::sqrt(tensor::cpu::kernels().squared_norm(gradient.data(), gradient.size()));
    if (!std::isfinite(norm)) return diverged(norm, steps_ + 1);
    report.gradient_norm = norm;
    report.clipped = norm > spec_.clip_norm();
    if (report.clipped) report.factor = static_cast<float>(scale * (spec_.clip_norm() / norm));
  }
  begin_step(learning_rate);
  step_part(0, weights, gradient, report.factor);
  return report;
}

void Optimizer::begin_step(double learning_rate) {
  terms_ = step_terms(spec_, learning_rate, ++steps_);
}

void Optimizer::step_part(std::size_t begin, std::span<float> weights, std::span<const float> gradient,
                          float factor) {
  const std::size_t end = begin + weights.size();
  PL_CHECK(end <= elements_ && gradient.size() == weights.size(), "a part lies inside the vector");
  auto range = std::partition_point(ranges_.begin(), ranges_.end(),
                                    [&](const DecayRange& each) { return each.end <= begin; });
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
  tensor::cpu::SgdStep step = sgd_step(spec_, terms_, part.decay);
  step.clip = part.factor;
  float* momentum = first_.empty() ? nullptr : first_.data() + part.begin;
  tensor::cpu::kernels().sgd(step, part.weights, momentum, part.gradient, part.count);
}

void Optimizer::step_adam(const Part& part) {
  tensor::cpu::AdamStep step = adam_step(spec_, terms_, part.decay);
  step.clip = part.factor;
  tensor::cpu::kernels().adam(step, part.weights, first_.data() + part.begin, second_.data() + part.begin,
                              part.gradient, part.count);
}

void Optimizer::step_adagrad(const Part& part) {
  tensor::cpu::AdagradStep step = adagrad_step(spec_, terms_, part.decay);
  step.clip = part.factor;
  tensor::cpu::kernels().adagrad(step, part.weights, first_.data() + part.begin, part.gradient, part.count);
}

std::vector<StateVector> Optimizer::state() {
  std::vector<StateVector> vectors;
  for (const std::string_view name : state_names(spec_)) {
    vectors.push_back({name, vectors.empty() ? first_ : second_});
  }
  return vectors;
}

}  // namespace paceline::optimizer
