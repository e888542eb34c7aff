#include "controller/stragglers/series.h"

#include <algorithm>
#include <cmath>

namespace paceline::stragglers {

void Noise::add(double value) {
  if (begun_) differences_[count_++ % kValues] = std::abs(value - last_);
  begun_ = true;
  last_ = value;
}

double Noise::width() const {
  if (!is_known()) return 0;
  const std::size_t count = std::min(count_, kValues);
  std::array<double, kValues> sorted = differences_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  constexpr double kMedianOfNormal = 0.6745, kSquareRootOfTwo = 1.4142;
  return *middle / (kMedianOfNormal * kSquareRootOfTwo);
}

Series::Series(double factor) : logs_{std::log(factor), std::log(std::max(factor, kLarge))} {}

double threshold_of(std::size_t series) {
  return kSurprise + std::log(static_cast<double>(std::max<std::size_t>(series, 1)));
}

void Series::add(double value, double width, double threshold) {
  double most = 0;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const double evidence = logs_[i] / (width * width) * (value - logs_[i] / 2);
    sums_[i] = std::clamp(sums_[i] + std::clamp(evidence, -kMostStep, kMostStep), 0.0, threshold);
    most = std::max(most, sums_[i]);
  }
  rises_ = most > 0;
  evidence_ = most / threshold;
  if (most >= threshold) slow_ = true;
  if (!rises_) slow_ = false;
}

}  // namespace paceline::stragglers
