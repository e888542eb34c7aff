// The gradient's norm, clipping by it, and the step over the flat vector with the bf16 copy of the weights:
// nothing waits for the host in between. Adam reads 16 bytes of each element and writes 12, and 2 of the
// copy.

#include "runtime/cuda/kernels/optimizer_params.h"
#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"

namespace paceline::cuda {
namespace {

template <int kWidth>
PL_DEVICE double squares(const float (&x)[kWidth]) {
  double total = 0;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) total += static_cast<double>(x[k]) * static_cast<double>(x[k]);
  return total;
}

// What a step is for one element: w and g come in, w goes out; `g` is not clipped yet. The same operations in
// the same order as the CPU's (tensor/cpu/kernels/body/optimizer.h), so with its fused multiply-add the same
// bits.
struct Sgd {
  const SgdParams& p;
  template <int kWidth>
  PL_DEVICE void at(std::size_t i, float (&w)[kWidth], float (&g)[kWidth], float clip, bool decays) const {
    const float decay = decays ? p.weight_decay : 0.0F;
    float b[kWidth] = {};
    if (p.momentum != nullptr) load<kWidth>(p.momentum + i, b);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      float step = fmaf(decay, w[k], g[k] * clip);
      if (p.momentum != nullptr) {
        b[k] = fmaf(p.factor, b[k], step);
        step = p.nesterov ? fmaf(p.factor, b[k], step) : b[k];
      }
      w[k] = fmaf(-p.learning_rate, step, w[k]);
    }
    if (p.momentum != nullptr) store<kWidth>(p.momentum + i, b);
  }
};

struct Adagrad {
  const AdagradParams& p;
  template <int kWidth>
  PL_DEVICE void at(std::size_t i, float (&w)[kWidth], float (&g)[kWidth], float clip, bool decays) const {
    const float decay = decays ? p.weight_decay : 0.0F;
    float sum[kWidth];
    load<kWidth>(p.sum + i, sum);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float step = fmaf(decay, w[k], g[k] * clip);
      sum[k] = fmaf(step, step, sum[k]);
      w[k] = fmaf(-p.learning_rate, step / (sqrtf(sum[k]) + p.epsilon), w[k]);
    }
    store<kWidth>(p.sum + i, sum);
  }
};

struct Adam {
  const AdamParams& p;
  template <int kWidth>
  PL_DEVICE void at(std::size_t i, float (&w)[kWidth], float (&g)[kWidth], float clip, bool decays) const {
    const float decay = decays ? p.weight_decay : 0.0F, shrink = decays ? p.shrink : 1.0F;
    float m[kWidth], v[kWidth];
    load<kWidth>(p.first + i, m);
    load<kWidth>(p.second + i, v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      w[k] *= shrink;
      g[k] = fmaf(decay, w[k], g[k] * clip);
      m[k] = fmaf(p.beta1, m[k], p.one_minus_beta1 * g[k]);
      v[k] = fmaf(p.beta2, v[k], p.one_minus_beta2 * (g[k] * g[k]));
      w[k] = fmaf(-p.step_size, m[k] / fmaf(sqrtf(v[k]), p.root_correction, p.epsilon), w[k]);
    }
    store<kWidth>(p.first + i, m);
    store<kWidth>(p.second + i, v);
  }
};

template <int kWidth, typename Rule>
PL_DEVICE void update_at(const UpdateParams& p, const Rule& rule, std::size_t i, float clip, bool decays) {
  float w[kWidth], g[kWidth];
  load<kWidth>(p.weights + i, w);
  load<kWidth>(p.gradient + i, g);
  rule.template at<kWidth>(i, w, g, clip, decays);
  store<kWidth>(p.weights + i, w);
  if (p.copy != nullptr) store<kWidth>(static_cast<Bf16*>(p.copy) + i, w);
}

template <typename Rule>
PL_DEVICE void update(const UpdateParams& p, const Rule& rule) {
  if (p.clipping != nullptr && p.clipping->finite == 0) return;
  constexpr std::uint32_t kWidth = kWide<float>;
  const UpdateChunk chunk = p.chunks[blockIdx.x];
  const float clip = p.clipping == nullptr ? 1.0F : p.clipping->factor;
  const std::uint32_t whole = chunk.count / kWidth;
  for (std::uint32_t v = threadIdx.x; v < whole; v += blockDim.x)
    update_at<kWidth>(p, rule, chunk.begin + static_cast<std::size_t>(v) * kWidth, clip, chunk.decay != 0);
  for (std::uint32_t i = whole * kWidth + threadIdx.x; i < chunk.count; i += blockDim.x)
    update_at<1>(p, rule, chunk.begin + i, clip, chunk.decay != 0);
}

}  // namespace

PL_KERNEL(kSquaresThreads, sum_squares, SquaresParams, p) {
  __shared__ double partials[kMostWarps];
  constexpr std::size_t kWidth = kWide<float>;
  const std::size_t whole = p.n / kWidth;
  double total = 0;
  constexpr int kAtOnce = 4;  // on their way together
  for (std::size_t v = thread_of_grid(); v < whole; v += kAtOnce * threads_of_grid()) {
    Packed<float, kWidth> x[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::size_t at = v + i * threads_of_grid();
      if (at < whole) x[i] = *reinterpret_cast<const Packed<float, kWidth>*>(p.x + at * kWidth);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) total += squares<kWidth>(x[i].at);
  }
  const std::size_t left = whole * kWidth + thread_of_grid();
  if (left < p.n) {
    const float x[1] = {p.x[left]};
    total += squares<1>(x);
  }
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

PL_KERNEL(kUpdateThreads, sgd, SgdParams, p) {
  update(p.update, Sgd{p});
}
PL_KERNEL(kUpdateThreads, adagrad, AdagradParams, p) {
  update(p.update, Adagrad{p});
}
PL_KERNEL(kUpdateThreads, adam, AdamParams, p) {
  update(p.update, Adam{p});
}

}  // namespace paceline::cuda
