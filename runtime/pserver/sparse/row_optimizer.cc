#include "runtime/pserver/sparse/row_optimizer.h"

#include <algorithm>
#include <cmath>

namespace paceline::pserver::sparse {

namespace {

constexpr std::uint32_t kCorrections = 4096;  // most rows of a long tail have few steps

}  // namespace

RowStepper::RowStepper(const RowOptimizer& optimizer, std::size_t dim)
    : rule_(optimizer),
      dim_(dim),
      states_(state_names(optimizer).size()),
      kernels_(tensor::cpu::kernels()),
      sgd_{.momentum = static_cast<float>(optimizer.momentum)},
      adagrad_{.epsilon = static_cast<float>(optimizer.epsilon)},
      adam_{.beta1 = static_cast<float>(optimizer.beta1),
            .one_minus_beta1 = static_cast<float>(1 - optimizer.beta1),
            .beta2 = static_cast<float>(optimizer.beta2),
            .one_minus_beta2 = static_cast<float>(1 - optimizer.beta2),
            .epsilon = static_cast<float>(optimizer.epsilon)},
      ftrl_{.alpha = static_cast<float>(optimizer.learning_rate),
            .beta = static_cast<float>(optimizer.beta),
            .l1 = static_cast<float>(optimizer.l1),
            .l2 = static_cast<float>(optimizer.l2)} {
  if (rule_.kind == RowOptimizer::Kind::kAdam) {
    for (std::uint32_t steps = 1; steps <= kCorrections; ++steps) corrections_.push_back(correction(steps));
  }
}

RowStepper::Correction RowStepper::correction(std::uint32_t steps) const {
  const auto t = static_cast<double>(steps);
  return {static_cast<float>(1 / (1 - std::pow(rule_.beta1, t))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(rule_.beta2, t)))};
}

void RowStepper::start(float* row) const {
  std::fill(row + dim_, row + row_floats(), 0.0f);
  if (rule_.kind != RowOptimizer::Kind::kFtrl) return;
  for (std::size_t k = 0; k < dim_; ++k) {
    const float w = row[k];
    const float sign = w > 0 ? 1.0f : w < 0 ? -1.0f : 0.0f;
    row[dim_ + k] = -w * (ftrl_.beta / ftrl_.alpha + ftrl_.l2) - sign * ftrl_.l1;
  }
}

void RowStepper::begin(float factor, double fraction) {
  rate_ = static_cast<float>(rule_.learning_rate * fraction);
  sgd_.clip = adagrad_.clip = adam_.clip = ftrl_.clip = factor;
  sgd_.learning_rate = adagrad_.learning_rate = rate_;
}

void RowStepper::step(float* row, const float* gradient, std::uint32_t steps) {
  switch (rule_.kind) {
    case RowOptimizer::Kind::kSgd:
      kernels_.sgd(sgd_, row, states_ > 0 ? row + dim_ : nullptr, gradient, dim_);
      return;
    case RowOptimizer::Kind::kAdagrad:
      kernels_.adagrad(adagrad_, row, row + dim_, gradient, dim_);
      return;
    case RowOptimizer::Kind::kAdam: {
      const Correction by = steps <= kCorrections ? corrections_[steps - 1] : correction(steps);
      adam_.step_size = rate_ * by.step_size;
      adam_.root_correction = by.root;
      kernels_.adam(adam_, row, row + dim_, row + 2 * dim_, gradient, dim_);
      return;
    }
    case RowOptimizer::Kind::kFtrl:
      kernels_.ftrl(ftrl_, row, row + dim_, row + 2 * dim_, gradient, dim_);
      return;
  }
}

}  // namespace paceline::pserver::sparse
