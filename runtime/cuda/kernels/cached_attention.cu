// Attention of one position to a cache of keys and values. A block has a head: its warps make the scores of
// one position after the other, all of them the softmax, and then its warps add up the values of one position
// after the other, kPart elements of the head at a time. What they added up is summed in the order of the
// warps: the same bits from run to run. It is bound by reading the cache.

#include "runtime/cuda/kernels/cached_attention_params.h"
#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"

namespace paceline::cuda {
namespace {

constexpr std::uint32_t kWarps = kCachedAttentionWarps, kOwn = 2, kPart = kOwn * kWarp;

template <typename T>
PL_DEVICE void keep(const KeepKeysValuesParams& p) {
  const T* const qkv = static_cast<const T*>(p.qkv);
  T* const cache = static_cast<T*>(p.cache);
  const std::size_t width = p.width, row = 2 * width, n = p.time * row;
  for (std::size_t i = thread_of_grid(); i < n; i += threads_of_grid())
    cache[i] = qkv[i / row * 3 * width + width + i % row];
}

// The sum over the lanes of a warp, for each lane.
template <typename T>
PL_DEVICE float warp_dot(const T* a, const T* b, std::uint32_t n) {
  float sum = 0;
  for (std::uint32_t c = lane_of_warp(); c < n; c += kWarp) sum = fmaf(to_float(a[c]), to_float(b[c]), sum);
  return warp_sum(sum);
}

// Elements [first, first + kPart) of y.
template <typename T>
PL_DEVICE void add_values(const T* values, std::size_t row, const float* shares, std::uint32_t seen,
                          float inverse, T* y, std::uint32_t first, std::uint32_t n,
                          float (&sums)[kWarps][kPart]) {
  float own[kOwn] = {};
#pragma unroll 4
  for (std::uint32_t t = warp_of_block(); t < seen; t += kWarps) {
    const float share = shares[t];
#pragma unroll
    for (std::uint32_t k = 0; k < kOwn; ++k) {
      const std::uint32_t c = first + lane_of_warp() + k * kWarp;
      if (c < n) own[k] = fmaf(share, to_float(values[t * row + c]), own[k]);
    }
  }
#pragma unroll
  for (std::uint32_t k = 0; k < kOwn; ++k) sums[warp_of_block()][lane_of_warp() + k * kWarp] = own[k];
  __syncthreads();
  if (threadIdx.x < kPart && first + threadIdx.x < n) {
    float sum = 0;
    for (std::uint32_t w = 0; w < kWarps; ++w) sum += sums[w][threadIdx.x];
    y[first + threadIdx.x] = rounded<T>(sum * inverse);
  }
  __syncthreads();
}

template <typename T>
PL_DEVICE void attend(const CachedAttentionParams& p) {
  __shared__ float partials[kMostWarps];
  __shared__ float sums[kWarps][kPart];
  const std::uint32_t head = blockIdx.x, n = p.head_size;
  const std::size_t width = static_cast<std::size_t>(p.heads) * n, row = 2 * width;
  const T* const query = static_cast<const T*>(p.qkv) + static_cast<std::size_t>(head) * n;
  T* const keys = static_cast<T*>(p.cache) + static_cast<std::size_t>(head) * n;
  T* const values = keys + width;
  T* const y = static_cast<T*>(p.y) + static_cast<std::size_t>(head) * n;
  const auto position = static_cast<std::uint32_t>(*p.position);
  if (position >= p.positions) {  // nothing is read or written beyond the cache
    for (std::uint32_t c = threadIdx.x; c < n; c += blockDim.x) y[c] = rounded<T>(NAN);
    return;
  }
  for (std::uint32_t c = threadIdx.x; c < n; c += blockDim.x) {
    keys[position * row + c] = query[width + c];
    values[position * row + c] = query[2 * width + c];
  }
  __syncthreads();

  const std::uint32_t seen = position + 1;
  float* const scores = p.scores + static_cast<std::size_t>(head) * p.positions;
#pragma unroll 4
  for (std::uint32_t t = warp_of_block(); t < seen; t += kWarps) {
    const float score = p.scale * warp_dot(query, keys + t * row, n);
    if (lane_of_warp() == 0) scores[t] = score;
  }
  __syncthreads();
  float highest = -INFINITY;
  for (std::uint32_t t = threadIdx.x; t < seen; t += blockDim.x)
    highest = scores[t] > highest ? scores[t] : highest;
  highest = block_max(highest, partials);
  float mass = 0;
  for (std::uint32_t t = threadIdx.x; t < seen; t += blockDim.x)
    mass += scores[t] = expf(scores[t] - highest);
  mass = block_sum(mass, partials);  // behind which the shares are there for all
  for (std::uint32_t first = 0; first < n; first += kPart)
    add_values<T>(values, row, scores, seen, 1 / mass, y, first, n, sums);
}

}  // namespace

PL_KERNEL(kKeepThreads, keep_keys_values_f32, KeepKeysValuesParams, p) {
  keep<float>(p);
}
PL_KERNEL(kKeepThreads, keep_keys_values_bf16, KeepKeysValuesParams, p) {
  keep<Bf16>(p);
}
PL_KERNEL(kCachedAttentionWarps* kWarp, cached_attention_f32, CachedAttentionParams, p) {
  attend<float>(p);
}
PL_KERNEL(kCachedAttentionWarps* kWarp, cached_attention_bf16, CachedAttentionParams, p) {
  attend<Bf16>(p);
}

}  // namespace paceline::cuda
