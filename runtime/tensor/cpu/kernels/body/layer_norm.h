#pragma once

// Layer norm: a row is read three times (sum, squares of deviations, result) while it lies in the first-level
// cache.

#include "runtime/tensor/cpu/kernels/body/elementwise.h"

namespace paceline::tensor::cpu {
namespace {

// Sum over a row of f(index of the first lane, lanes in use).
template <typename Function>
inline float row_sum(std::size_t columns, Function f) {
  F total = zero();
  std::size_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) total = total + f(i, kLanes);
  if (i < columns) total = total + f(i, columns - i);
  return sum(total);
}

inline F load_some(const float* p, std::size_t m) {
  return m == kLanes ? load(p) : load(p, m);
}
inline void store_some(float* p, F x, std::size_t m) {
  if (m == kLanes) {
    store(p, x);
  } else {
    store(p, x, m);
  }
}
// Lanes from m on are 0.
inline F only(F x, std::size_t m) {
  return m == kLanes ? x : keep(x, m, zero());
}

void layer_norm(const float* x, const float* residual, float* sums, const float* gain, const float* bias,
                float* y, float* means, float* inverses, float epsilon, std::size_t rows,
                std::size_t columns) {
  const float share = 1.0f / static_cast<float>(columns);
  for (std::size_t r = 0; r < rows; ++r) {
    const float* row = x + r * columns;
    if (residual != nullptr) {
      add(row, residual + r * columns, sums + r * columns, columns);
      row = sums + r * columns;
    }
    const float mean =
        share * row_sum(columns, [&](std::size_t i, std::size_t m) { return load_some(row + i, m); });
    const F center = set(mean);
    const float variance = share * row_sum(columns, [&](std::size_t i, std::size_t m) {
                             const F d = only(load_some(row + i, m) - center, m);
                             return d * d;
                           });
    const float inverse = 1.0f / __builtin_sqrtf(variance + epsilon);
    means[r] = mean;
    inverses[r] = inverse;
    const F spread = set(inverse);
    float* out = y + r * columns;
    for (std::size_t i = 0; i < columns; i += kLanes) {
      const std::size_t m = columns - i < kLanes ? columns - i : kLanes;
      const F normal = (load_some(row + i, m) - center) * spread;
      store_some(out + i, fma(normal, load_some(gain + i, m), load_some(bias + i, m)), m);
    }
  }
}

// With h the normalized row and g = dy * gain: dx = (g - mean(g) - h * mean(g * h)) / deviation.
void layer_norm_backward(const float* rows_in, const float* gain, const float* means, const float* inverses,
                         const float* dy, const float* through, float* dx, float* gain_gradient,
                         float* bias_gradient, std::size_t rows, std::size_t columns) {
  const float share = 1.0f / static_cast<float>(columns);
  for (std::size_t r = 0; r < rows; ++r) {
    const float* row = rows_in + r * columns;
    const float* d = dy + r * columns;
    const F center = set(means[r]), spread = set(inverses[r]);
    F sum_g = zero(), sum_gh = zero();
    for (std::size_t i = 0; i < columns; i += kLanes) {
      const std::size_t m = columns - i < kLanes ? columns - i : kLanes;
      const F h = only((load_some(row + i, m) - center) * spread, m);
      const F dv = load_some(d + i, m);
      const F g = dv * load_some(gain + i, m);
      sum_g = sum_g + g;
      sum_gh = fma(g, h, sum_gh);
      store_some(gain_gradient + i, fma(dv, h, load_some(gain_gradient + i, m)), m);
      store_some(bias_gradient + i, load_some(bias_gradient + i, m) + dv, m);
    }
    const F mean_g = set(share * sum(sum_g)), mean_gh = set(share * sum(sum_gh));
    for (std::size_t i = 0; i < columns; i += kLanes) {
      const std::size_t m = columns - i < kLanes ? columns - i : kLanes;
      const F h = (load_some(row + i, m) - center) * spread;
      const F g = load_some(d + i, m) * load_some(gain + i, m);
      F result = (g - mean_g - h * mean_gh) * spread;
      if (through != nullptr) result = result + load_some(through + r * columns + i, m);
      store_some(dx + r * columns + i, result, m);
    }
  }
}

}  // namespace
}  // namespace paceline::tensor::cpu
