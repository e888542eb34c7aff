#pragma once

// Attention of one position to a cache of keys and values: per head two passes over the cache, the first for
// the scores, the second for the sum of the values. It is bound by reading the cache.

#include "runtime/tensor/cpu/kernels/body/rows.h"

namespace paceline::tensor::cpu {
namespace {

inline float dot_product(const float* a, const float* b, std::size_t n) {
  F total = zero();
  for (std::size_t i = 0; i < n; i += kLanes) {
    const std::size_t m = n - i < kLanes ? n - i : kLanes;
    total = fma(load_some(a + i, m), load_some(b + i, m), total);
  }
  return sum(total);
}

// y += factor * x
inline void add_scaled(float factor, const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; i += kLanes) {
    const std::size_t m = n - i < kLanes ? n - i : kLanes;
    store_some(y + i, fma(set(factor), load_some(x + i, m), load_some(y + i, m)), m);
  }
}

void cached_attention(std::size_t heads, std::size_t head_size, std::size_t seen, const float* qkv,
                      const float* cache, float* out, float* scratch) {
  const std::size_t width = heads * head_size;
  const float factor = 1.0f / __builtin_sqrtf(static_cast<float>(head_size));
  for (std::size_t h = 0; h < heads; ++h) {
    const float* keys = cache + h * head_size;
    const float* values = keys + width;
    float* y = out + h * head_size;
    for (std::size_t t = 0; t < seen; ++t)
      scratch[t] = factor * dot_product(qkv + h * head_size, keys + t * 2 * width, head_size);
    const F shift = set(row_maximum(scratch, seen));
    const float mass = row_sum(seen, [&](std::size_t t, std::size_t m) {
      const F e = only(exp(load_some(scratch + t, m) - shift), m);
      store_some(scratch + t, e, m);
      return e;
    });
    for (std::size_t i = 0; i < head_size; ++i) y[i] = 0;
    for (std::size_t t = 0; t < seen; ++t)
      add_scaled(scratch[t] / mass, values + t * 2 * width, y, head_size);
  }
}

}  // namespace
}  // namespace paceline::tensor::cpu
