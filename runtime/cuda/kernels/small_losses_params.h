#pragma once

// What the kernels of small_losses.cu take. A result is three doubles: the sum of the losses, how many are
// right, how many there are.

#include <cstddef>
#include <cstdint>

namespace paceline::cuda {

inline constexpr int kSmallLossThreads = 512;

// One block. -log of the probability sigmoid(logit) of 1, or of what is left to 0; a label that is neither
// makes a NaN. Right is a logit above 0 for 1, else for 0.
struct SigmoidLossParams {
  const void* logits;          // [rows]
  const std::int32_t* labels;  // [rows]
  float* scores;               // [rows]: the logits
  void* gradient;              // [rows]: sigmoid(logit) - label; null: none. May be `logits`
  double* result;
  std::uint32_t rows;
};

// partials[block] = the sum of (x - y)^2 over the block's elements.
struct SquaredDifferencesParams {
  const void* x;
  const void* y;
  double* partials;
  std::size_t n;
};
// One block: the sum of the partials divided by per_sample, then 0 and 0.
struct SquaredSumParams {
  const double* partials;
  double* result;
  double per_sample;
  std::uint32_t parts;
};
// dx = factor (x - y)
struct ScaledDifferenceParams {
  const void* x;
  const void* y;
  void* dx;
  float factor;
  std::size_t n;
};

}  // namespace paceline::cuda
