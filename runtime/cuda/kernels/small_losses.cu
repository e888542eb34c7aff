// Losses of models with one number for each sample, and of two values' difference: small beside the rest of a
// step. Sums are in double and in a fixed order.

#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"
#include "runtime/cuda/kernels/small_losses_params.h"

namespace paceline::cuda {
namespace {

// max(z, 0) - z label + log(1 + e^-|z|). NaN stays NaN.
PL_DEVICE double sigmoid_loss(double z, std::int32_t label) {
  if (label != 0 && label != 1) return NAN;
  const double above = z > 0 ? z : 0, size = z > 0 ? z : -z;
  return z != z ? z : above - (label == 1 ? z : 0) + log1p(exp(-size));
}

template <typename T>
PL_DEVICE void sigmoid_cross_entropy(const SigmoidLossParams& p) {
  __shared__ double partials[kMostWarps];
  double loss = 0, right = 0;
  for (std::uint32_t r = threadIdx.x; r < p.rows; r += blockDim.x) {
    const float z = to_float(static_cast<const T*>(p.logits)[r]);
    const std::int32_t label = p.labels[r];
    loss += sigmoid_loss(z, label);
    right += label == 1 ? z > 0 : z <= 0;
    p.scores[r] = z;
    if (p.gradient != nullptr)
      static_cast<T*>(p.gradient)[r] = rounded<T>(1 / (1 + expf(-z)) - static_cast<float>(label));
  }
  loss = block_sum(loss, partials);
  right = block_sum(right, partials);
  if (threadIdx.x != 0) return;
  p.result[0] = loss;
  p.result[1] = right;
  p.result[2] = p.rows;
}

template <typename T>
PL_DEVICE void squared_differences(const SquaredDifferencesParams& p) {
  __shared__ double partials[kMostWarps];
  double sum = 0;
  for (std::size_t i = thread_of_grid(); i < p.n; i += threads_of_grid()) {
    const double d = static_cast<double>(to_float(static_cast<const T*>(p.x)[i])) -
                     static_cast<double>(to_float(static_cast<const T*>(p.y)[i]));
    sum += d * d;
  }
  sum = block_sum(sum, partials);
  if (threadIdx.x == 0) p.partials[blockIdx.x] = sum;
}

template <typename T>
PL_DEVICE void scaled_difference(const ScaledDifferenceParams& p) {
  for (std::size_t i = thread_of_grid(); i < p.n; i += threads_of_grid()) {
    const float d = to_float(static_cast<const T*>(p.x)[i]) - to_float(static_cast<const T*>(p.y)[i]);
    static_cast<T*>(p.dx)[i] = rounded<T>(p.factor * d);
  }
}

}  // namespace

#define PL_BOTH_TYPES(name, Params)                      \
  PL_KERNEL(kSmallLossThreads, name##_f32, Params, p) {  \
    name<float>(p);                                      \
  }                                                      \
  PL_KERNEL(kSmallLossThreads, name##_bf16, Params, p) { \
    name<Bf16>(p);                                       \
  }

PL_BOTH_TYPES(sigmoid_cross_entropy, SigmoidLossParams)
PL_BOTH_TYPES(squared_differences, SquaredDifferencesParams)
PL_BOTH_TYPES(scaled_difference, ScaledDifferenceParams)

PL_KERNEL(kSmallLossThreads, sum_squared_differences, SquaredSumParams, p) {
  __shared__ double partials[kMostWarps];
  double sum = 0;
  for (std::uint32_t i = threadIdx.x; i < p.parts; i += blockDim.x) sum += p.partials[i];
  sum = block_sum(sum, partials);
  if (threadIdx.x != 0) return;
  p.result[0] = sum / p.per_sample;
  p.result[1] = 0;
  p.result[2] = 0;
}

}  // namespace paceline::cuda
