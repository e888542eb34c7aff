#include "runtime/data/zipf.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

// The histogram of the chances lies under the curve x^-s, shifted by half a bar. A point is drawn uniformly
// under the curve by inverting its area, and rejected where it is not under the bar that it rounds to. The
// first bar begins lower, so that it is hit exactly as often as its height says.

namespace paceline::data {

Zipf::Zipf(std::int64_t size, double exponent) : size_(static_cast<double>(size)), exponent_(exponent) {
  PL_CHECK(size >= 1 && size <= (std::int64_t{1} << 31), "a Zipf distribution has 1 to 2^31 values");
  PL_CHECK(exponent >= 0 && exponent <= 10, "a Zipf distribution's exponent is in [0, 10]");
  first_ = area(1.5) - 1;
  last_ = area(size_ + 0.5);
  sure_ = 2 - inverse(area(2.5) - std::pow(2, -exponent));
}

double Zipf::area(double x) const {
  const double power = 1 - exponent_, log = std::log(x);
  return std::abs(power * log) < 1e-9 ? log : std::expm1(power * log) / power;
}

double Zipf::inverse(double a) const {
  const double power = 1 - exponent_, t = std::max(a * power, -1.0);
  return std::abs(t) < 1e-9 ? std::exp(a) : std::exp(std::log1p(t) / power);
}

std::int64_t Zipf::draw(Rng& rng) const {
  while (true) {
    const double uniform = static_cast<double>(rng.next_u64() >> 11) * 0x1.0p-53;
    const double a = last_ + uniform * (first_ - last_);
    const double x = inverse(a);
    const double bar = std::clamp(std::floor(x + 0.5), 1.0, size_);
    if (bar - x <= sure_ || a >= area(bar + 0.5) - std::pow(bar, -exponent_)) {
      return static_cast<std::int64_t>(bar) - 1;
    }
  }
}

double Zipf::chance_of_first() const {
  const auto terms = static_cast<std::int64_t>(std::min(size_, 1e6));
  double sum = 0;
  for (std::int64_t k = terms; k >= 1; --k) sum += std::pow(static_cast<double>(k), -exponent_);
  return 1 / (sum + area(size_ + 0.5) - area(static_cast<double>(terms) + 0.5));
}

}  // namespace paceline::data
