#pragma once

// One-pass loops over vectors and over the rows of matrices.

#include "runtime/tensor/cpu/kernels/body/math.h"

namespace paceline::tensor::cpu {
namespace {

template <typename Function>
inline void map1(const float* x, float* y, std::size_t n, Function f) {
  each_vector(
      n, [&](std::size_t i) { store(y + i, f(load(x + i))); },
      [&](std::size_t i, std::size_t m) { store(y + i, f(load(x + i, m)), m); });
}

template <typename Function>
inline void map2(const float* a, const float* b, float* y, std::size_t n, Function f) {
  each_vector(
      n, [&](std::size_t i) { store(y + i, f(load(a + i), load(b + i))); },
      [&](std::size_t i, std::size_t m) { store(y + i, f(load(a + i, m), load(b + i, m)), m); });
}

void scale(float* x, float factor, std::size_t n) {
  map1(x, x, n, [f = set(factor)](F v) { return v * f; });
}

void add(const float* a, const float* b, float* sum, std::size_t n) {
  map2(a, b, sum, n, [](F x, F y) { return x + y; });
}

void add_bias(float* x, const float* bias, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) add(x + r * columns, bias, x + r * columns, columns);
}

// Four vectors of columns at a time stay in registers while the rows go by.
void column_sums(const float* x, float* sums, bool accumulate, std::size_t rows, std::size_t columns) {
  std::size_t c = 0;
  for (; c + 4 * kLanes <= columns; c += 4 * kLanes) {
    F s[4];
    for (std::size_t k = 0; k < 4; ++k) s[k] = accumulate ? load(sums + c + k * kLanes) : zero();
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t k = 0; k < 4; ++k) s[k] = s[k] + load(x + r * columns + c + k * kLanes);
    }
    for (std::size_t k = 0; k < 4; ++k) store(sums + c + k * kLanes, s[k]);
  }
  for (; c < columns; c += kLanes) {
    const std::size_t m = columns - c < kLanes ? columns - c : kLanes;
    F s = zero();
    if (m == kLanes) {
      if (accumulate) s = load(sums + c);
      for (std::size_t r = 0; r < rows; ++r) s = s + load(x + r * columns + c);
      store(sums + c, s);
    } else {
      if (accumulate) s = load(sums + c, m);
      for (std::size_t r = 0; r < rows; ++r) s = s + load(x + r * columns + c, m);
      store(sums + c, s, m);
    }
  }
}

void relu(const float* x, float* y, std::size_t n) {
  map1(x, y, n, [](F v) { return max(zero(), v); });
}

void relu_backward(const float* y, const float* dy, float* dx, std::size_t n) {
  // Where y is NaN the comparison fails and y's NaN is added.
  map2(y, dy, dx, n, [](F out, F d) { return if_less(zero(), out, d, out * zero()); });
}

void tanh_forward(const float* x, float* y, std::size_t n) {
  map1(x, y, n, [](F v) { return tanh(v); });
}

void tanh_backward(const float* y, const float* dy, float* dx, std::size_t n) {
  map2(y, dy, dx, n, [](F out, F d) { return d * (set(1.0f) - out * out); });
}

void gelu(const float* x, float* y, std::size_t n) {
  map1(x, y, n, [](F v) { return gelu_of(v); });
}

void gelu_backward(const float* x, const float* dy, float* dx, std::size_t n) {
  map2(x, dy, dx, n, [](F v, F d) { return d * gelu_slope(v); });
}

// Written so that the compiler vectorizes it at every level.
void to_bf16(const float* x, std::uint16_t* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto u = __builtin_bit_cast(std::uint32_t, x[i]);
    const std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const std::uint32_t quiet = (u >> 16) | 0x40u;
    y[i] = static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
}

void from_bf16(const std::uint16_t* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    y[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(x[i]) << 16);
}

}  // namespace
}  // namespace paceline::tensor::cpu
