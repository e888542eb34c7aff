// Layer norm over rows (Ba, Kiros, Hinton 2016), with the residual sum before it.
//
// Forward: a warp for each row, which it reads once: up to 2048 columns stay in registers over the two sums
// and the result; what is beyond is read again, from the cache. The variance is that of differences from the
// mean.
//
// Backward, with h the normalised row and g = dy * gain: dx = (g - mean(g) - h * mean(g * h)) / deviation. A
// block goes over its rows one by one, every thread with its own columns, so that the gradients of gain and
// bias gather in registers: read x, dy and what passes by, write dx, and two rows of partial sums for each
// block (joined by reduce.cu).

#include "runtime/cuda/kernels/layer_norm_params.h"
#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"

namespace paceline::cuda {
namespace {

constexpr int kHeldColumns = 64;  // in registers of each lane

template <typename T, int kWidth>
struct Row {
  const T* x;
  const T* residual;
  T* sum;
  std::uint32_t vectors;

  // Vector v of the row, after the residual was added (and written) in the first pass.
  PL_DEVICE void first(std::uint32_t v, float (&values)[kWidth]) const {
    load<kWidth>(x + v * kWidth, values);
    if (residual == nullptr) return;
    float other[kWidth];
    load<kWidth>(residual + v * kWidth, other);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) values[k] = to_float(rounded<T>(values[k] + other[k]));
    store<kWidth>(sum + v * kWidth, values);
  }
  PL_DEVICE void again(std::uint32_t v, float (&values)[kWidth]) const {
    load<kWidth>((residual == nullptr ? x : sum) + v * kWidth, values);
  }
};

template <typename T, int kWidth>
PL_DEVICE void forward(const LayerNormParams& p) {
  constexpr int kHeld = kHeldColumns / kWidth;
  const std::uint32_t lane = lane_of_warp(), vectors = p.columns / kWidth;
  const float share = 1.0F / static_cast<float>(p.columns);
  for (std::uint32_t r = blockIdx.x * warps_of_block() + warp_of_block(); r < p.rows;
       r += gridDim.x * warps_of_block()) {
    const std::size_t at = static_cast<std::size_t>(r) * p.columns;
    const Row<T, kWidth> row{static_cast<const T*>(p.x) + at,
                             p.residual == nullptr ? nullptr : static_cast<const T*>(p.residual) + at,
                             p.residual == nullptr ? nullptr : static_cast<T*>(p.sum) + at, vectors};
    float held[kHeld][kWidth], more[kWidth];
    float total = 0;
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      const std::uint32_t v = h * kWarp + lane;
      if (v >= vectors) break;
      row.first(v, held[h]);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) total += held[h][k];
    }
    for (std::uint32_t v = kHeld * kWarp + lane; v < vectors; v += kWarp) {
      row.first(v, more);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) total += more[k];
    }
    const float mean = share * warp_sum(total);

    float squares = 0;
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      if (h * kWarp + lane >= vectors) break;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) squares += (held[h][k] - mean) * (held[h][k] - mean);
    }
    for (std::uint32_t v = kHeld * kWarp + lane; v < vectors; v += kWarp) {
      row.again(v, more);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) squares += (more[k] - mean) * (more[k] - mean);
    }
    const float inverse = rsqrtf(share * warp_sum(squares) + p.epsilon);

    const auto finish = [&](std::uint32_t v, float(&values)[kWidth]) {
      float gain[kWidth], bias[kWidth];
      load<kWidth>(p.gain + v * kWidth, gain);
      load<kWidth>(p.bias + v * kWidth, bias);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) values[k] = (values[k] - mean) * inverse * gain[k] + bias[k];
      store<kWidth>(static_cast<T*>(p.y) + at + v * kWidth, values);
    };
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      if (h * kWarp + lane >= vectors) break;
      finish(h * kWarp + lane, held[h]);
    }
    for (std::uint32_t v = kHeld * kWarp + lane; v < vectors; v += kWarp) {
      row.again(v, more);
      finish(v, more);
    }
    if (lane == 0) {
      p.means[r] = mean;
      p.inverses[r] = inverse;
    }
  }
}

// kOwn: vectors of each thread.
template <typename T, int kWidth, int kOwn>
PL_DEVICE void backward(const LayerNormBackwardParams& p) {
  // By turns, so that one barrier for each row is enough: who writes has seen all others behind the barrier
  // before.
  __shared__ float partials[2][2][kMostWarps];
  const std::uint32_t vectors = p.columns / kWidth;
  const float share = 1.0F / static_cast<float>(p.columns);
  float gain[kOwn][kWidth], gain_gradient[kOwn][kWidth], bias_gradient[kOwn][kWidth];
#pragma unroll
  for (int o = 0; o < kOwn; ++o) {
    const std::uint32_t v = o * blockDim.x + threadIdx.x;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) gain_gradient[o][k] = bias_gradient[o][k] = gain[o][k] = 0;
    if (v < vectors) load<kWidth>(p.gain + v * kWidth, gain[o]);
  }
  unsigned turn = 0;
  for (std::uint32_t r = blockIdx.x; r < p.rows; r += gridDim.x, turn ^= 1) {
    const std::size_t at = static_cast<std::size_t>(r) * p.columns;
    const float mean = p.means[r], inverse = p.inverses[r];
    float g[kOwn][kWidth], h[kOwn][kWidth];
    Packed<T, kWidth> through[kOwn] = {};  // on its way while the sums are made
    float sum_g = 0, sum_gh = 0;
#pragma unroll
    for (int o = 0; o < kOwn; ++o) {
      const std::uint32_t v = o * blockDim.x + threadIdx.x;
      if (v >= vectors) break;
      load<kWidth>(static_cast<const T*>(p.dy) + at + v * kWidth, g[o]);
      load<kWidth>(static_cast<const T*>(p.x) + at + v * kWidth, h[o]);
      if (p.through != nullptr)
        through[o] =
            *reinterpret_cast<const Packed<T, kWidth>*>(static_cast<const T*>(p.through) + at + v * kWidth);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        h[o][k] = (h[o][k] - mean) * inverse;
        gain_gradient[o][k] += g[o][k] * h[o][k];
        bias_gradient[o][k] += g[o][k];
        g[o][k] *= gain[o][k];
        sum_g += g[o][k];
        sum_gh += g[o][k] * h[o][k];
      }
    }
    sum_g = warp_sum(sum_g);
    sum_gh = warp_sum(sum_gh);
    if (lane_of_warp() == 0) {
      partials[turn][0][warp_of_block()] = sum_g;
      partials[turn][1][warp_of_block()] = sum_gh;
    }
    __syncthreads();
    sum_g = sum_gh = 0;
    for (unsigned w = 0; w < warps_of_block(); ++w) {
      sum_g += partials[turn][0][w];
      sum_gh += partials[turn][1][w];
    }
    const float mean_g = share * sum_g, mean_gh = share * sum_gh;
#pragma unroll
    for (int o = 0; o < kOwn; ++o) {
      const std::uint32_t v = o * blockDim.x + threadIdx.x;
      if (v >= vectors) break;
      float dx[kWidth];
#pragma unroll
      for (int k = 0; k < kWidth; ++k) dx[k] = (g[o][k] - mean_g - h[o][k] * mean_gh) * inverse;
      if (p.through != nullptr) {
#pragma unroll
        for (int k = 0; k < kWidth; ++k) dx[k] += to_float(through[o].at[k]);
      }
      store<kWidth>(static_cast<T*>(p.dx) + at + v * kWidth, dx);
    }
  }
  float* const mine = p.partials + static_cast<std::size_t>(blockIdx.x) * 2 * p.columns;
#pragma unroll
  for (int o = 0; o < kOwn; ++o) {
    const std::uint32_t v = o * blockDim.x + threadIdx.x;
    if (v >= vectors) break;
    store<kWidth>(mine + v * kWidth, gain_gradient[o]);
    store<kWidth>(mine + p.columns + v * kWidth, bias_gradient[o]);
  }
}

}  // namespace

PL_KERNEL(kNormThreads, layer_norm_f32, LayerNormParams, p) {
  forward<float, kWide<float>>(p);
}
PL_KERNEL(kNormThreads, layer_norm_bf16, LayerNormParams, p) {
  forward<Bf16, kWide<Bf16>>(p);
}
PL_KERNEL(kNormThreads, layer_norm_any_f32, LayerNormParams, p) {
  forward<float, 1>(p);
}
PL_KERNEL(kNormThreads, layer_norm_any_bf16, LayerNormParams, p) {
  forward<Bf16, 1>(p);
}
PL_KERNEL(kNormBackwardThreads, layer_norm_backward_f32, LayerNormBackwardParams, p) {
  backward<float, kWide<float>, kOwnF32>(p);
}
PL_KERNEL(kNormBackwardThreads, layer_norm_backward_bf16, LayerNormBackwardParams, p) {
  backward<Bf16, kWide<Bf16>, kOwnBf16>(p);
}
PL_KERNEL(kNormBackwardThreads, layer_norm_backward_any_f32, LayerNormBackwardParams, p) {
  backward<float, 1, kOwnAny>(p);
}
PL_KERNEL(kNormBackwardThreads, layer_norm_backward_any_bf16, LayerNormBackwardParams, p) {
  backward<Bf16, 1, kOwnAny>(p);
}

}  // namespace paceline::cuda
