#pragma once

// Zipf's distribution over 0 .. size-1: the chance of k is proportional to (k + 1)^-exponent. Rejection
// inversion (Hörmann and Derflinger 1996): no table, so a vocabulary of any size costs the same, about 1.1
// tries of a logarithm and two exponentials. Exact but for rounding. Pure; immutable; thread-safe.

#include <cstdint>

#include "base/rng.h"

namespace paceline::data {

class Zipf {
 public:
  // REQUIRES: 1 <= size <= 2^31, 0 <= exponent <= 10. Exponent 0 is the uniform distribution.
  Zipf(std::int64_t size, double exponent);

  std::int64_t draw(Rng& rng) const;
  // The chance of value 0; of value k it is this times (k + 1)^-exponent. Adds up to 10^6 terms, then an
  // integral.
  double chance_of_first() const;

 private:
  double area(double x) const;     // the integral of x^-exponent from 1 to x
  double inverse(double a) const;  // the x that area a belongs to

  double size_;
  double exponent_;
  double first_, last_;  // areas that draws lie between
  double sure_;          // a draw is accepted at once where rounding moved it up by at most this
};

}  // namespace paceline::data
