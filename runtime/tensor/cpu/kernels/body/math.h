#pragma once

// exp, tanh and the logistic function over F.
//
// exp: x = k ln 2 + r with |r| <= ln 2 / 2; a polynomial of degree 7 for e^r (Cephes' expf coefficients),
// times 2^k made from k's bits. Relative error below 2e-7 for -87 <= x <= 88; below it gives e^-87 (1.6e-38),
// above it e^88; NaN stays NaN.

#include "runtime/tensor/cpu/kernels/body/vector.h"

namespace paceline::tensor::cpu {
namespace {

inline F exp(F x) {
  x = min(set(88.0f), max(set(-87.0f), x));
  const F magic =
      set(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, which its low bits then hold
  const F shifted = fma(x, set(1.44269504088896341f), magic);
  const F k = shifted - magic;
  const F r = fma(k, set(2.12194440e-4f), fma(k, set(-0.693359375f), x));
  F p = set(1.9875691500e-4f);
  p = fma(p, r, set(1.3981999507e-3f));
  p = fma(p, r, set(8.3334519073e-3f));
  p = fma(p, r, set(4.1665795894e-2f));
  p = fma(p, r, set(1.6666665459e-1f));
  p = fma(p, r, set(5.0000001201e-1f));
  p = fma(p, r * r, r + set(1.0f));
  return p * power_of_two(shifted);
}

// Absolute error below 2e-7. Near 0 a polynomial (Cephes' tanhf): there 1 - 2 / (e^2x + 1) would cancel.
inline F tanh(F x) {
  const F square = x * x;
  F p = set(-5.70498872745e-3f);
  p = fma(p, square, set(2.06390887954e-2f));
  p = fma(p, square, set(-5.37397155531e-2f));
  p = fma(p, square, set(1.33314422036e-1f));
  p = fma(p, square, set(-3.33332819422e-1f));
  const F small = fma(p * square, x, x);
  const F large = set(1.0f) - set(2.0f) / (exp(x + x) + set(1.0f));
  return if_less(square, set(0.390625f), small, large);
}

// GELU as GPT-2 has it: x (1 + tanh u) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3), which is x s with s = 1 /
// (1 + e^-2u). Beyond |x| = 9.9 s is 0 or 1 in float.
struct Gelu {
  F s;      // s
  F rest;   // 1 - s, without cancellation
  F slope;  // 2 du/dx
};
inline Gelu gelu_parts(F x) {
  const F c = min(set(9.9f), max(set(-9.9f), x));
  const F square = c * c;
  const F inner = fma(square, set(-2.0f * 0.7978845608028654f * 0.044715f), set(-2.0f * 0.7978845608028654f));
  const F e = exp(c * inner);
  const F s = set(1.0f) / (set(1.0f) + e);
  return {s, e * s,
          fma(square, set(6.0f * 0.7978845608028654f * 0.044715f), set(2.0f * 0.7978845608028654f))};
}
inline F gelu_of(F x) {
  return x * gelu_parts(x).s;
}
inline F gelu_slope(F x) {
  const Gelu g = gelu_parts(x);
  return fma(x * g.rest, g.s * g.slope, g.s);
}

}  // namespace
}  // namespace paceline::tensor::cpu
