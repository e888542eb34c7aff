// Layer norm over rows (Ba, Kiros, Hinton 2016), with the residual sum before it.
//
// Forward: as many warps for each row (kernels/layer_norm_params.h) as hold it in registers over the two sums
// and the result: it is read once, several vectors of a lane on their way together. The variance is that of
// differences from the mean.
//
// Backward, with h the normalised row and g = dy * gain: dx = (g - mean(g) - h * mean(g * h)) / deviation. A
// block goes over its rows one by one, every thread with its own columns, so that the gradients of gain and
// bias gather in registers: read x, dy and what passes by, write dx, and two rows of partial sums for each
// block (joined by reduce.cu). Of rows beyond kMostHeldNormColumns nothing is held: they are read again, and
// the gradients of gain and bias gather in the partial sums, each touched by its own thread alone.

#include "runtime/cuda/kernels/layer_norm_params.h"
#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"

namespace paceline::cuda {
namespace {

// The vectors of a row that one lane holds, kWarp apart from `first` on.
template <typename T, int kWidth>
struct Held {
  static constexpr int kColumns = kWidth == 1 ? kNormLaneAny : kNormLaneColumns;
  static constexpr int kCount = kColumns / kWidth, kAtOnce = 4;
  using Vector = Packed<T, kWidth>;

  std::uint32_t first, end;
  float at[kCount][kWidth];

  // each(vector's number, its first column), of vectors [kFrom, kTo).
  template <int kFrom = 0, int kTo = kCount, typename Each>
  PL_DEVICE void over(Each each) const {
#pragma unroll
    for (int i = kFrom; i < kTo; ++i) {
      if (first + i * kWarp < end) each(i, (first + i * kWarp) * kWidth);
    }
  }
  // row, or row + residual, which is written to `sum`, too. Zeros beyond the end.
  template <bool kAdds, int kFrom = 0>
  PL_DEVICE void read(const T* row, const T* residual, T* sum) {
    constexpr int kTo = kFrom + kAtOnce;
    Vector mine[kAtOnce] = {}, other[kAtOnce] = {};  // on their way
    const auto begin = [&](const T* from, Vector(&to)[kAtOnce]) {
      over<kFrom, kTo>(
          [&](int i, std::uint32_t c) { to[i - kFrom] = *reinterpret_cast<const Vector*>(from + c); });
    };
    begin(row, mine);
    if constexpr (kAdds) begin(residual, other);
#pragma unroll
    for (int i = kFrom; i < kTo; ++i) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        at[i][k] = to_float(mine[i - kFrom].at[k]);
        if constexpr (kAdds) at[i][k] = to_float(rounded<T>(at[i][k] + to_float(other[i - kFrom].at[k])));
      }
    }
    if constexpr (kAdds) over<kFrom, kTo>([&](int i, std::uint32_t c) { store<kWidth>(sum + c, at[i]); });
    if constexpr (kTo < kCount) read<kAdds, kTo>(row, residual, sum);
  }
};

// Over a row's warps, the same for each lane. All of the block call it; the next call gives other `partials`.
PL_DEVICE float row_sum(float x, std::uint32_t warps, float* partials) {
  x = warp_sum(x);
  if (warps == 1) return x;
  if (lane_of_warp() == 0) partials[warp_of_block()] = x;
  __syncthreads();
  const std::uint32_t first = warp_of_block() / warps * warps;
  x = partials[first];
#pragma unroll 1
  for (std::uint32_t w = 1; w < warps; ++w) x += partials[first + w];
  return x;
}

template <typename T, int kWidth, bool kAdds>
PL_DEVICE void forward_rows(const LayerNormParams& p) {
  __shared__ float partials[2][kNormThreads / kWarp];
  using Row = Held<T, kWidth>;
  const std::uint32_t warps = norm_row_warps(p.columns, Row::kColumns), together = warps_of_block() / warps;
  const float share = 1.0F / static_cast<float>(p.columns);
  for (std::uint32_t begin = blockIdx.x * together; begin < p.rows; begin += gridDim.x * together) {
    const std::uint32_t r = begin + warp_of_block() / warps;
    const bool there = r < p.rows;  // else it only takes part in barriers
    const std::size_t at = static_cast<std::size_t>(there ? r : 0) * p.columns;
    Row row{
        warp_of_block() % warps * (Row::kCount * kWarp) + lane_of_warp(), there ? p.columns / kWidth : 0, {}};
    row.template read<kAdds>(static_cast<const T*>(p.x) + at,
                             kAdds ? static_cast<const T*>(p.residual) + at : nullptr,
                             kAdds ? static_cast<T*>(p.sum) + at : nullptr);
    float total = 0;
    row.over([&](int i, std::uint32_t) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) total += row.at[i][k];
    });
    const float mean = share * row_sum(total, warps, partials[0]);

    float squares = 0;
    row.over([&](int i, std::uint32_t) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        const float difference = row.at[i][k] - mean;
        squares += difference * difference;
      }
    });
    const float inverse = rsqrtf(share * row_sum(squares, warps, partials[1]) + p.epsilon);

    row.over([&](int i, std::uint32_t c) {
      float values[kWidth], gain[kWidth], bias[kWidth];
      load<kWidth>(p.gain + c, gain);
      load<kWidth>(p.bias + c, bias);
#pragma unroll
      for (int k = 0; k < kWidth; ++k) values[k] = (row.at[i][k] - mean) * inverse * gain[k] + bias[k];
      store<kWidth>(static_cast<T*>(p.y) + at + c, values);
    });
    if (there && row.first == 0) {
      p.means[r] = mean;
      p.inverses[r] = inverse;
    }
  }
}

template <typename T, int kWidth>
PL_DEVICE void forward(const LayerNormParams& p) {
  if (p.residual == nullptr) {
    forward_rows<T, kWidth, false>(p);
  } else {
    forward_rows<T, kWidth, true>(p);
  }
}

// Of rows that no block holds: read again for the squares and for the result, from the cache.
template <typename T>
PL_DEVICE void forward_wide(const LayerNormParams& p) {
  __shared__ float partials[2][kNormThreads / kWarp];
  const float share = 1.0F / static_cast<float>(p.columns);
  for (std::uint32_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    const std::size_t at = static_cast<std::size_t>(r) * p.columns;
    const T* row = static_cast<const T*>(p.x) + at;
    float total = 0;
    if (p.residual == nullptr) {
      for (std::uint32_t c = threadIdx.x; c < p.columns; c += blockDim.x) total += to_float(row[c]);
    } else {
      T* const sum = static_cast<T*>(p.sum) + at;
      for (std::uint32_t c = threadIdx.x; c < p.columns; c += blockDim.x) {
        const T x = rounded<T>(to_float(row[c]) + to_float(static_cast<const T*>(p.residual)[at + c]));
        sum[c] = x;
        total += to_float(x);
      }
      row = sum;
    }
    const float mean = share * row_sum(total, warps_of_block(), partials[0]);

    float squares = 0;
    for (std::uint32_t c = threadIdx.x; c < p.columns; c += blockDim.x) {
      const float difference = to_float(row[c]) - mean;
      squares += difference * difference;
    }
    const float inverse = rsqrtf(share * row_sum(squares, warps_of_block(), partials[1]) + p.epsilon);

    for (std::uint32_t c = threadIdx.x; c < p.columns; c += blockDim.x)
      static_cast<T*>(p.y)[at + c] = rounded<T>((to_float(row[c]) - mean) * inverse * p.gain[c] + p.bias[c]);
    if (threadIdx.x == 0) {
      p.means[r] = mean;
      p.inverses[r] = inverse;
    }
  }
}

// Both, of all threads of the block. The next call gives other `partials`, and the one after it may give
// these again.
PL_DEVICE void block_sums(float (&partials)[2][kMostWarps], float& sum_g, float& sum_gh) {
  sum_g = warp_sum(sum_g);
  sum_gh = warp_sum(sum_gh);
  if (lane_of_warp() == 0) {
    partials[0][warp_of_block()] = sum_g;
    partials[1][warp_of_block()] = sum_gh;
  }
  __syncthreads();
  sum_g = sum_gh = 0;
  for (unsigned w = 0; w < warps_of_block(); ++w) {
    sum_g += partials[0][w];
    sum_gh += partials[1][w];
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
    block_sums(partials[turn], sum_g, sum_gh);
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

template <typename T>
PL_DEVICE void backward_wide(const LayerNormBackwardParams& p) {
  __shared__ float partials[2][2][kMostWarps];  // by turns, as above
  const float share = 1.0F / static_cast<float>(p.columns);
  float* const gains = p.partials + static_cast<std::size_t>(blockIdx.x) * 2 * p.columns;
  float* const biases = gains + p.columns;
  for (std::uint32_t c = threadIdx.x; c < p.columns; c += blockDim.x) gains[c] = biases[c] = 0;
  unsigned turn = 0;
  for (std::uint32_t r = blockIdx.x; r < p.rows; r += gridDim.x, turn ^= 1) {
    const std::size_t at = static_cast<std::size_t>(r) * p.columns;
    const T* const x = static_cast<const T*>(p.x) + at;
    const T* const dy = static_cast<const T*>(p.dy) + at;
    const float mean = p.means[r], inverse = p.inverses[r];
    float sum_g = 0, sum_gh = 0;
    for (std::uint32_t c = threadIdx.x; c < p.columns; c += blockDim.x) {
      const float h = (to_float(x[c]) - mean) * inverse, d = to_float(dy[c]), g = d * p.gain[c];
      gains[c] += d * h;
      biases[c] += d;
      sum_g += g;
      sum_gh += g * h;
    }
    block_sums(partials[turn], sum_g, sum_gh);
    const float mean_g = share * sum_g, mean_gh = share * sum_gh;
    for (std::uint32_t c = threadIdx.x; c < p.columns; c += blockDim.x) {
      const float h = (to_float(x[c]) - mean) * inverse;
      float dx = (to_float(dy[c]) * p.gain[c] - mean_g - h * mean_gh) * inverse;
      if (p.through != nullptr) dx += to_float(static_cast<const T*>(p.through)[at + c]);
      static_cast<T*>(p.dx)[at + c] = rounded<T>(dx);
    }
  }
}

}  // namespace

PL_KERNEL_SHARED(kNormThreads, 4, layer_norm_f32, LayerNormParams, p) {
  forward<float, kWide<float>>(p);
}
PL_KERNEL_SHARED(kNormThreads, 4, layer_norm_bf16, LayerNormParams, p) {
  forward<Bf16, kWide<Bf16>>(p);
}
PL_KERNEL(kNormThreads, layer_norm_any_f32, LayerNormParams, p) {
  forward<float, 1>(p);
}
PL_KERNEL(kNormThreads, layer_norm_any_bf16, LayerNormParams, p) {
  forward<Bf16, 1>(p);
}
PL_KERNEL(kNormThreads, layer_norm_wide_f32, LayerNormParams, p) {
  forward_wide<float>(p);
}
PL_KERNEL(kNormThreads, layer_norm_wide_bf16, LayerNormParams, p) {
  forward_wide<Bf16>(p);
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
PL_KERNEL(kNormBackwardThreads, layer_norm_backward_wide_f32, LayerNormBackwardParams, p) {
  backward_wide<float>(p);
}
PL_KERNEL(kNormBackwardThreads, layer_norm_backward_wide_bf16, LayerNormBackwardParams, p) {
  backward_wide<Bf16>(p);
}

}  // namespace paceline::cuda
