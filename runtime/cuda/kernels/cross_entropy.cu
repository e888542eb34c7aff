// Softmax and cross-entropy over rows of logits, with the gradient written over them: no copy of the logits
// is made. A row is read twice (the second time from the cache, where 100 KB fit) and written once. The first
// reading keeps, for each thread, the highest logit so far and the sum of e^(logit - highest), which is
// brought down whenever a higher one comes (Milakov and Gimelshein 2018).

#include "runtime/cuda/kernels/cross_entropy_params.h"
#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"

namespace paceline::cuda {
namespace {

constexpr std::uint32_t kNowhere = 0xffffffffU;

// Of several classes: the highest logit, the first class that has it, the sum of e^(logit - highest).
struct Mass {
  float highest;
  std::uint32_t first;
  float sum;
};

// e^(lower - higher), 1 where both are -infinity.
PL_DEVICE float ratio(float lower, float higher) {
  return lower == higher ? 1.0F : expf(lower - higher);
}

PL_DEVICE Mass join(const Mass& a, const Mass& b) {
  const bool other = b.highest > a.highest || (b.highest == a.highest && b.first < a.first);
  const float highest = b.highest > a.highest ? b.highest : a.highest;
  return {highest, other ? b.first : a.first,
          a.sum * ratio(a.highest, highest) + b.sum * ratio(b.highest, highest)};
}

template <int kWidth>
PL_DEVICE void add(Mass& mass, const float (&x)[kWidth], std::uint32_t first, std::uint32_t classes) {
  float highest = mass.highest;
  std::uint32_t at = mass.first;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    if (first + k < classes && x[k] > highest) {
      highest = x[k];
      at = first + k;
    }
  }
  float sum = mass.sum * ratio(mass.highest, highest);
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    // A class without hope adds nothing, not even to others like it.
    if (first + k < classes && x[k] != -INFINITY) sum += expf(x[k] - highest);
  }
  mass = {highest, at, sum};
}

// The same for every thread.
PL_DEVICE Mass over_block(Mass mass) {
  __shared__ Mass partials[kMostWarps];
#pragma unroll
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    const Mass other{__shfl_xor_sync(kWholeWarp, mass.highest, lanes),
                     __shfl_xor_sync(kWholeWarp, mass.first, lanes),
                     __shfl_xor_sync(kWholeWarp, mass.sum, lanes)};
    // The same operand first in both lanes, so that both get the same bits.
    mass = (lane_of_warp() & lanes) == 0 ? join(mass, other) : join(other, mass);
  }
  if (lane_of_warp() == 0) partials[warp_of_block()] = mass;
  __syncthreads();
  mass = partials[0];
  for (unsigned w = 1; w < warps_of_block(); ++w) mass = join(mass, partials[w]);
  return mass;
}

template <typename T, int kWidth, bool kGradient>
PL_DEVICE void cross_entropy(const CrossEntropyParams& p) {
  const std::uint32_t r = blockIdx.x;
  T* const row = static_cast<T*>(p.logits) + static_cast<std::size_t>(r) * p.stride;
  const std::int32_t label = p.labels[r];
  const bool known = label >= 0 && static_cast<std::uint32_t>(label) < p.classes;
  const float score = known ? to_float(row[label]) : NAN;

  Mass mass{-INFINITY, kNowhere, 0};
  float x[kWidth];
  for (std::uint32_t i = threadIdx.x * kWidth; i < p.classes; i += blockDim.x * kWidth) {
    load<kWidth>(row + i, x);
    add<kWidth>(mass, x, i, p.classes);
  }
  mass = over_block(mass);
  if (threadIdx.x == 0) {
    const float loss = logf(mass.sum) + (mass.highest - score);
    p.losses[r] = loss;
    p.hits[r] = loss == loss && mass.first == static_cast<std::uint32_t>(label) ? 1 : 0;
  }
  if constexpr (kGradient) {
    // Every thread has its label's logit since before the barrier, and writes what it alone has read.
    const float share = 1 / mass.sum;
    for (std::uint32_t i = threadIdx.x * kWidth; i < p.stride; i += blockDim.x * kWidth) {
      load<kWidth>(row + i, x);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const std::uint32_t c = i + k;
        const float one = c == static_cast<std::uint32_t>(label) ? 1.0F : 0.0F;
        x[k] = c < p.classes ? (expf(x[k] - mass.highest) * share - one) * p.scale : 0.0F;
      }
      store<kWidth>(row + i, x);
    }
  }
}

}  // namespace

PL_KERNEL(kCrossEntropyThreads, cross_entropy_f32, CrossEntropyParams, p) {
  cross_entropy<float, kWide<float>, false>(p);
}
PL_KERNEL(kCrossEntropyThreads, cross_entropy_bf16, CrossEntropyParams, p) {
  cross_entropy<Bf16, kWide<Bf16>, false>(p);
}
PL_KERNEL(kCrossEntropyThreads, cross_entropy_any_f32, CrossEntropyParams, p) {
  cross_entropy<float, 1, false>(p);
}
PL_KERNEL(kCrossEntropyThreads, cross_entropy_any_bf16, CrossEntropyParams, p) {
  cross_entropy<Bf16, 1, false>(p);
}
PL_KERNEL(kCrossEntropyThreads, cross_entropy_gradient_f32, CrossEntropyParams, p) {
  cross_entropy<float, kWide<float>, true>(p);
}
PL_KERNEL(kCrossEntropyThreads, cross_entropy_gradient_bf16, CrossEntropyParams, p) {
  cross_entropy<Bf16, kWide<Bf16>, true>(p);
}
PL_KERNEL(kCrossEntropyThreads, cross_entropy_gradient_any_f32, CrossEntropyParams, p) {
  cross_entropy<float, 1, true>(p);
}
PL_KERNEL(kCrossEntropyThreads, cross_entropy_gradient_any_bf16, CrossEntropyParams, p) {
  cross_entropy<Bf16, 1, true>(p);
}

PL_KERNEL(kLossSumThreads, sum_losses, LossSumParams, p) {
  __shared__ double partials[kMostWarps];
  double loss = 0, hits = 0;
  for (std::uint32_t r = threadIdx.x; r < p.rows; r += blockDim.x) {
    loss += static_cast<double>(p.losses[r]);
    hits += p.hits[r];
  }
  loss = block_sum(loss, partials);
  hits = block_sum(hits, partials);
  if (threadIdx.x != 0) return;
  p.result[0] = loss / p.rows_per_sample;
  p.result[1] = hits;
  p.result[2] = p.rows;
}

}  // namespace paceline::cuda
