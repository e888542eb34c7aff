// Softmax and cross-entropy over rows of logits, with the gradient written over them: no copy of the logits
// is made. A row is read twice, the second time backwards and from the cache: a multiprocessor has two rows
// under way, of 100 KB each where the vocabulary is GPT-2's and the logits are bf16. The first reading keeps,
// for each thread, the highest logit so far and the sum of e^(logit - highest), which is brought down
// whenever a higher one comes (Milakov and Gimelshein 2018).
//
// Rows begin wherever the one before ends: accesses are of 16 bytes but for what lies before the first and
// behind the last whole one.

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
  return lower == higher ? 1.0F : quick_exp(lower - higher);
}

// Of all lanes, the same for each.
PL_DEVICE Mass over_warp(const Mass& mass) {
  const float highest = warp_max(mass.highest);
  return {highest, warp_min(mass.highest == highest ? mass.first : kNowhere),
          warp_sum(mass.sum * ratio(mass.highest, highest))};
}

// The same for every thread.
PL_DEVICE Mass over_block(Mass mass) {
  __shared__ Mass partials[kMostWarps];
  mass = over_warp(mass);
  if (lane_of_warp() == 0) partials[warp_of_block()] = mass;
  __syncthreads();
  const bool one = lane_of_warp() < warps_of_block();
  return over_warp(one ? partials[lane_of_warp()] : Mass{-INFINITY, kNowhere, 0});
}

// Classes in order: those of one call stand behind those of the calls before.
template <int kWidth, typename T>
PL_DEVICE void add(Mass& mass, const T* row, std::uint32_t first) {
  float x[kWidth];
  load<kWidth>(row + first, x);
  float highest = mass.highest;
  std::uint32_t at = mass.first;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    if (x[k] > highest) {
      highest = x[k];
      at = first + k;
    }
  }
  float sum = mass.sum * ratio(mass.highest, highest);
  // A class without hope adds nothing, not even to others like it.
  const float above = highest == -INFINITY ? 0.0F : highest;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) sum += quick_exp(x[k] - above);
  mass = {highest, at, sum};
}

// What each logit becomes.
struct Gradient {
  float highest;
  float factor;         // scale / sum of e^(logit - highest)
  float scale;          // off at the label
  std::uint32_t label;  // no class: none

  template <int kWidth, typename T>
  PL_DEVICE void at(T* row, std::uint32_t first) const {
    float x[kWidth];
    load<kWidth>(row + first, x);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) x[k] = quick_exp(x[k] - highest) * factor;
    if (label - first < static_cast<std::uint32_t>(kWidth)) {
#pragma unroll
      for (std::uint32_t k = 0; k < kWidth; ++k) x[k] -= label - first == k ? scale : 0.0F;
    }
    store<kWidth>(row + first, x);
  }
};

template <typename T, bool kGradient>
PL_DEVICE void cross_entropy(const CrossEntropyParams& p) {
  constexpr std::uint32_t kWidth = kWide<T>;
  const std::uint32_t r = blockIdx.x, t = threadIdx.x;
  T* const row = static_cast<T*>(p.logits) + static_cast<std::size_t>(r) * p.stride;
  const auto label = static_cast<std::uint32_t>(p.labels[r]);
  float score = NAN;
  if (t == 0 && label < p.classes) score = to_float(row[label]);

  // Classes [0, head) and from `behind` on are taken one by one: fewer than kWidth of either.
  const auto over = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(row) % 16 / sizeof(T));
  const std::uint32_t wanted = over == 0 ? 0 : kWidth - over;
  const std::uint32_t head = wanted < p.classes ? wanted : p.classes;
  const std::uint32_t accesses = (p.classes - head) / kWidth, behind = head + accesses * kWidth;

  // Of the accesses between, each thread has every blockDim.x-th.
  const std::uint32_t own = t < accesses ? (accesses - 1 - t) / blockDim.x + 1 : 0;
  const std::uint32_t begin = head + t * kWidth, step = blockDim.x * kWidth;

  Mass mass{-INFINITY, kNowhere, 0};
  if (t < head) add<1>(mass, row, t);
  for (std::uint32_t i = 0; i < own; ++i) add<kWide<T>>(mass, row, begin + i * step);
  if (behind + t < p.classes) add<1>(mass, row, behind + t);
  mass = over_block(mass);
  if (t == 0 && p.losses != nullptr) {
    const float loss = logf(mass.sum) + (mass.highest - score);
    p.losses[r] = loss;
    p.hits[r] = loss == loss && mass.first == label ? 1 : 0;
  }
  if constexpr (kGradient) {
    // The label's logit was read before the barrier; from here on every thread has its own columns.
    const Gradient gradient{mass.highest, p.scale / mass.sum, p.scale, label};
    for (std::uint32_t i = p.classes + t; i < p.stride; i += blockDim.x) row[i] = rounded<T>(0);
    if (behind + t < p.classes) gradient.template at<1>(row, behind + t);
    for (std::uint32_t i = own; i > 0; --i) gradient.template at<kWide<T>>(row, begin + (i - 1) * step);
    if (t < head) gradient.template at<1>(row, t);
  }
}

}  // namespace

PL_KERNEL_SHARED(kCrossEntropyThreads, 2, cross_entropy_f32, CrossEntropyParams, p) {
  cross_entropy<float, false>(p);
}
PL_KERNEL_SHARED(kCrossEntropyThreads, 2, cross_entropy_bf16, CrossEntropyParams, p) {
  cross_entropy<Bf16, false>(p);
}
PL_KERNEL_SHARED(kCrossEntropyThreads, 2, cross_entropy_gradient_f32, CrossEntropyParams, p) {
  cross_entropy<float, true>(p);
}
PL_KERNEL_SHARED(kCrossEntropyThreads, 2, cross_entropy_gradient_bf16, CrossEntropyParams, p) {
  cross_entropy<Bf16, true>(p);
}

PL_KERNEL(kLossSumThreads, sum_losses, LossSumParams, p) {
  __shared__ double partials[kMostWarps];
  double loss = 0, hits = 0;
  constexpr std::uint32_t kAtOnce = 8;  // rows that a thread has on their way together
  for (std::size_t r = threadIdx.x; r < p.rows; r += kAtOnce * blockDim.x) {
    float losses[kAtOnce] = {};
    std::int32_t are_hits[kAtOnce] = {};
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const std::size_t at = r + i * blockDim.x;
      if (at >= p.rows) continue;
      losses[i] = p.losses[at];
      are_hits[i] = p.hits[at];
    }
#pragma unroll
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      loss += static_cast<double>(losses[i]);
      hits += are_hits[i];
    }
  }
  loss = block_sum(loss, partials);
  hits = block_sum(hits, partials);
  if (threadIdx.x != 0) return;
  p.result[0] = loss / p.rows_per_sample;
  p.result[1] = hits;
  p.result[2] = p.rows;
}

}  // namespace paceline::cuda
