#pragma once

// Sums and maxima over the threads of a warp and of a block, always in the same order: butterflies within a
// warp, then the warps one by one. Every thread gets the result.

#include <type_traits>

#include "runtime/cuda/kernels/portable.h"

namespace paceline::cuda {

inline constexpr int kMostWarps = 32;

template <typename T>
PL_DEVICE T warp_sum(T x) {
#pragma unroll
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) x += __shfl_xor_sync(kWholeWarp, x, lanes);
  return x;
}

template <typename T>
PL_DEVICE T warp_max(T x) {
#pragma unroll
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    const T other = __shfl_xor_sync(kWholeWarp, x, lanes);
    x = other > x ? other : x;
  }
  return x;
}

template <typename T>
PL_DEVICE T warp_min(T x) {
#pragma unroll
  for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    const T other = __shfl_xor_sync(kWholeWarp, x, lanes);
    x = other < x ? other : x;
  }
  return x;
}

PL_DEVICE unsigned warp_of_block() {
  return threadIdx.x / kWarp;
}
PL_DEVICE unsigned lane_of_warp() {
  return threadIdx.x % kWarp;
}
PL_DEVICE unsigned warps_of_block() {
  return blockDim.x / kWarp;
}

// Over all threads of the block, which all call it. `partials` (shared, kMostWarps) is free for others before
// and afterwards.
template <typename T>
PL_DEVICE T block_sum(T x, T* partials) {
  x = warp_sum(x);
  if (lane_of_warp() == 0) partials[warp_of_block()] = x;
  __syncthreads();
  T total = 0;
  for (unsigned w = 0; w < warps_of_block(); ++w) total += partials[w];
  __syncthreads();
  return total;
}
template <typename T>
PL_DEVICE T block_max(T x, T* partials) {
  x = warp_max(x);
  if (lane_of_warp() == 0) partials[warp_of_block()] = x;
  __syncthreads();
  T most = partials[0];
  for (unsigned w = 1; w < warps_of_block(); ++w) most = partials[w] > most ? partials[w] : most;
  __syncthreads();
  return most;
}

// total += the vectors at at(0), at(1), ... in this order: kMost of them, or `left` where those are fewer.
// All are on their way together.
template <std::uint32_t kMost, int kWidth, typename At>
PL_DEVICE void add_vectors(float (&total)[kWidth], std::uint32_t left, At at) {
  using Vector = Packed<std::remove_cvref_t<decltype(*at(0))>, kWidth>;
  Vector vectors[kMost] = {};
  if (left >= kMost) {  // without a condition on each: nvcc would load one behind the other
#pragma unroll
    for (std::uint32_t i = 0; i < kMost; ++i) vectors[i] = *reinterpret_cast<const Vector*>(at(i));
  } else {
#pragma unroll
    for (std::uint32_t i = 0; i < kMost - 1; ++i) {
      if (i < left) vectors[i] = *reinterpret_cast<const Vector*>(at(i));
    }
  }
#pragma unroll
  for (std::uint32_t i = 0; i < kMost; ++i) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) total[k] += to_float(vectors[i].at[k]);  // zeros change nothing
  }
}

}  // namespace paceline::cuda
