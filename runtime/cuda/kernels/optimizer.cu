// The gradient's norm, clipping by it, and AdamW over the flat vector with the bf16 copy of the weights:
// nothing waits for the host in between. Adam reads 16 bytes of each element and writes 12, and 2 of the
// copy.

#include "runtime/cuda/kernels/optimizer_params.h"
#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"

namespace paceline::cuda {
namespace {

template <int kWidth>
PL_DEVICE double squares(const float* x) {
  float values[kWidth];
  load<kWidth>(x, values);
  double total = 0;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) total += static_cast<double>(values[k]) * static_cast<double>(values[k]);
  return total;
}

template <int kWidth>
PL_DEVICE void update(const AdamParams& p, std::size_t i, float clip, float decay, float shrink) {
  float w[kWidth], m[kWidth], v[kWidth], g[kWidth];
  load<kWidth>(p.weights + i, w);
  load<kWidth>(p.first + i, m);
  load<kWidth>(p.second + i, v);
  load<kWidth>(p.gradient + i, g);
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    w[k] *= shrink;
    g[k] = fmaf(decay, w[k], g[k] * clip);
    m[k] = fmaf(p.beta1, m[k], p.one_minus_beta1 * g[k]);
    v[k] = fmaf(p.beta2, v[k], p.one_minus_beta2 * (g[k] * g[k]));
    w[k] = fmaf(-p.step_size, m[k] / fmaf(sqrtf(v[k]), p.root_correction, p.epsilon), w[k]);
  }
  store<kWidth>(p.weights + i, w);
  store<kWidth>(p.first + i, m);
  store<kWidth>(p.second + i, v);
  if (p.copy != nullptr) store<kWidth>(static_cast<Bf16*>(p.copy) + i, w);
}

}  // namespace

PL_KERNEL(kSquaresThreads, sum_squares, SquaresParams, p) {
  __shared__ double partials[kMostWarps];
  constexpr std::size_t kWidth = kWide<float>;
  const std::size_t whole = p.n / kWidth;
  double total = 0;
  for (std::size_t v = thread_of_grid(); v < whole; v += threads_of_grid())
    total += squares<kWidth>(p.x + v * kWidth);
  const std::size_t left = whole * kWidth + thread_of_grid();
  if (left < p.n) total += squares<1>(p.x + left);
  total = block_sum(total, partials);
  if (threadIdx.x == 0) p.partials[blockIdx.x] = total;
}

PL_KERNEL(kSquaresThreads, clip_by_norm, ClipParams, p) {
  __shared__ double partials[kMostWarps];
  double total = 0;
  for (std::uint32_t i = threadIdx.x; i < p.parts; i += blockDim.x) total += p.partials[i];
  total = block_sum(total, partials);
  if (threadIdx.x != 0) return;
  const double norm = sqrt(total);
  const bool finite = norm < static_cast<double>(INFINITY);
  *p.result = {norm, finite && norm > p.clip_norm ? static_cast<float>(p.clip_norm / norm) : 1.0F,
               finite ? 1U : 0U};
}

PL_KERNEL(kAdamThreads, adam, AdamParams, p) {
  if (p.clipping != nullptr && p.clipping->finite == 0) return;
  constexpr std::uint32_t kWidth = kWide<float>;
  const UpdateChunk chunk = p.chunks[blockIdx.x];
  const float clip = p.clipping == nullptr ? 1.0F : p.clipping->factor;
  const float decay = chunk.decay != 0 ? p.weight_decay : 0.0F, shrink = chunk.decay != 0 ? p.shrink : 1.0F;
  const std::uint32_t whole = chunk.count / kWidth;
  for (std::uint32_t v = threadIdx.x; v < whole; v += blockDim.x)
    update<kWidth>(p, chunk.begin + static_cast<std::size_t>(v) * kWidth, clip, decay, shrink);
  for (std::uint32_t i = whole * kWidth + threadIdx.x; i < chunk.count; i += blockDim.x)
    update<1>(p, chunk.begin + i, clip, decay, shrink);
}

}  // namespace paceline::cuda
