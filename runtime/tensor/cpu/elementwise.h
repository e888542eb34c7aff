#pragma once

// Loops over single elements that are not in kernels/: they are bound by memory or rarely used. y may be x
// everywhere.

#include <cstddef>

namespace paceline::tensor::cpu {

void round_to_bf16(const float* x, float* y,
                   std::size_t n);  // to the nearest bf16 value, ties to even; y is fp32
void multiply(const float* a, const float* b, float* y, std::size_t n);
void scale_to(const float* x, float factor, float* y, std::size_t n);
void sigmoid(const float* x, float* y, std::size_t n);
void sigmoid_backward(const float* y, const float* dy, float* dx, std::size_t n);  // from the output

// The sum of squared differences, in double.
double squared_difference(const float* a, const float* b, std::size_t n);
void scaled_difference(const float* a, const float* b, float factor, float* y,
                       std::size_t n);  // factor * (a - b)

}  // namespace paceline::tensor::cpu
