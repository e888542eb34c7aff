#include "runtime/tensor/cpu/elementwise.h"

#include <algorithm>
#include <cstdint>

#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::tensor::cpu {

void round_to_bf16(const float* x, float* y, std::size_t n) {
  constexpr std::size_t kChunk = 1024;
  std::uint16_t rounded[kChunk];
  for (std::size_t i = 0; i < n; i += kChunk) {
    const std::size_t count = std::min(kChunk, n - i);
    kernels().to_bf16(x + i, rounded, count);
    kernels().from_bf16(rounded, y + i, count);
  }
}

void multiply(const float* a, const float* b, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

void scale_to(const float* x, float factor, float* y, std::size_t n) {
  if (x != y) std::copy(x, x + n, y);
  if (factor != 1) kernels().scale(y, factor, n);
}

// 1 / (1 + e^-x) = (1 + tanh(x / 2)) / 2
void sigmoid(const float* x, float* y, std::size_t n) {
  scale_to(x, 0.5F, y, n);
  kernels().tanh(y, y, n);
  for (std::size_t i = 0; i < n; ++i) y[i] = 0.5F * y[i] + 0.5F;
}

void sigmoid_backward(const float* y, const float* dy, float* dx, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) dx[i] = dy[i] * y[i] * (1 - y[i]);
}

double squared_difference(const float* a, const float* b, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += d * d;
  }
  return sum;
}

void scaled_difference(const float* a, const float* b, float factor, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = factor * (a[i] - b[i]);
}

}  // namespace paceline::tensor::cpu
