// Causal self-attention on tensor cores (Dao 2023, FlashAttention-2): bf16, heads of at most 128 elements, in
// eights. attention.h says what it computes.
//
// The same kernels come in two kinds: a warp multiplies by itself, or on compute capability 9.0 four warps
// together (warp_group.h). A block has some positions of one head, 16 or 32 for each warp, and goes over the
// positions that these see (for the gradients of keys and values: that see these), step by step. What a step
// needs is copied into shared memory while the step before it is computed. Scores are made by one product
// into registers, which are the left operand of the next: S = Q K^T, y += e^S V; dq += dS K; dv += e^(S^T)
// dy, dk += dS^T q. So every sum is one warp's, in one order: nothing is added by several, and the same bits
// come from run to run.
//
// Steps on the diagonal are masked. What the mask hides still meets the other operand's numbers as 0 times
// them, and is NaN where they are: a NaN may reach earlier positions of the same block, though no other row
// or head.

#include "runtime/cuda/kernels/flash_rows.h"

namespace paceline::cuda {
namespace {

constexpr float kLog2E = 1.4426950408889634F;

// ---- where a block works ----

struct Seat {
  std::size_t row_head;
  std::size_t position;  // of the row's time 0
  std::uint32_t head;
  std::uint32_t first;  // own time

  PL_DEVICE Seat(const AttentionShape& s, std::uint32_t own, bool last_is_longest) {
    const FlashTurn at = flash_turn(s, own, blockIdx.x);
    row_head = at.row_head;
    head = static_cast<std::uint32_t>(row_head % s.heads);
    position = row_head / s.heads * s.time;
    first = (last_is_longest ? (s.time + own - 1) / own - 1 - at.turn : at.turn) * own;
  }
};

enum Part : std::uint32_t { kQueries, kKeys, kValues };
template <typename T>
PL_DEVICE Vectors<T> part_of(T* qkv, Part part, const AttentionShape& s, const Seat& seat) {
  const std::uint32_t width = s.heads * s.head_size;
  return {qkv + (seat.position * 3 + part) * width + seat.head * s.head_size, 3 * width, s.time, s.head_size};
}
template <typename T>
PL_DEVICE Vectors<T> results_of(T* y, const AttentionShape& s, const Seat& seat) {
  const std::uint32_t width = s.heads * s.head_size;
  return {y + seat.position * width + seat.head * s.head_size, width, s.time, s.head_size};
}

// ---- forward ----

PL_DEVICE float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kWholeWarp, x, 1));
  return fmaxf(x, __shfl_xor_sync(kWholeWarp, x, 2));
}
PL_DEVICE float quad_sum(float x) {
  x += __shfl_xor_sync(kWholeWarp, x, 1);
  return x + __shfl_xor_sync(kWholeWarp, x, 2);
}

template <FlashSizes kS>
PL_DEVICE void forward(const AttentionParams& p) {
  constexpr int kHead = kS.head_size, kM = kS.warp_rows / 16, kN = kS.step / 8;
  const AttentionShape& s = p.shape;
  const Seat seat(s, kS.own(), true);
  const auto* const qkv = static_cast<const Bf16*>(p.qkv);
  const auto keys = part_of(qkv, kKeys, s, seat), values = part_of(qkv, kValues, s, seat);
  const Shared q = shared_memory(), k = q + kS.bytes(kS.own()), v = k + kS.bytes(2 * kS.step);
  const Shared own_q = q + kS.bytes(warp_of_block() * kS.warp_rows);
  const std::uint32_t mine = seat.first + warp_of_block() * kS.warp_rows;
  const std::uint32_t end = s.time - seat.first < kS.own() ? s.time : seat.first + kS.own();

  begin_rows<kS, kS.own()>(q, part_of(qkv, kQueries, s, seat), seat.first);
  begin_rows<kS, kS.step>(k, keys, 0);
  begin_rows<kS, kS.step>(v, values, 0);
  copies_commit();
  const float scale = p.scale * kLog2E;
  Sums<kM, kHead / 8> y = {};
  float highest[kM][2], sum[kM][2] = {};
#pragma unroll
  for (int m = 0; m < kM; ++m) highest[m][0] = highest[m][1] = -INFINITY;
  for (std::uint32_t key = 0; key < end; key += kS.step) {
    const std::uint32_t turn = key / kS.step % 2, other = 1 - turn;
    rows_wait<kS>();
    __syncthreads();  // this step's rows are there, and nobody reads the last one's any more
    if (key + kS.step < end) {
      begin_rows<kS, kS.step>(k + kS.bytes(other * kS.step), keys, key + kS.step);
      begin_rows<kS, kS.step>(v + kS.bytes(other * kS.step), values, key + kS.step);
      copies_commit();
    }
    if (!kS.groups && (mine >= s.time || key >= mine + kS.warp_rows)) continue;
    Sums<kM, kN> scores;
    begin_multiply_rows<kS, kM, kN>(scores, own_q, k + kS.bytes(turn * kS.step));
    products_wait<kS, 0>(scores[0]);
    if (key + kS.step > mine + 1) {
      mask<kM, kN>(scores,
                   [&](std::uint32_t row, std::uint32_t column) { return key + column > mine + row; });
    }
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float most = highest[m][half];
#pragma unroll
        for (int n = 0; n < kN; ++n)
          most = fmaxf(most, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
        most = quad_max(most);
        const float kept = quick_exp2((highest[m][half] - most) * scale), offset = -most * scale;
        highest[m][half] = most;
        sum[m][half] *= kept;
#pragma unroll
        for (int n = 0; n < kN; ++n) {
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            scores[m][n][i] = quick_exp2(fmaf(scores[m][n][i], scale, offset));
            sum[m][half] += scores[m][n][i];
          }
        }
#pragma unroll
        for (int d = 0; d < kHead / 8; ++d) {
          y[m][d][2 * half] *= kept;
          y[m][d][2 * half + 1] *= kept;
        }
      }
    }
    Left<kS, kN> left;
    begin_add_product<kS, kM, kN>(y, scores, left, v + kS.bytes(turn * kS.step));
    products_wait<kS, 0>(y[0], left);
  }

#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = quad_sum(sum[m][half]), inverse = 1 / total;
#pragma unroll
      for (int d = 0; d < kHead / 8; ++d) {
        y[m][d][2 * half] *= inverse;
        y[m][d][2 * half + 1] *= inverse;
      }
      const std::uint32_t t = mine + m * 16 + half * 8 + row_of_lane();
      if (lane_of_warp() % 4 != 0 || t >= s.time) continue;
      float* const statistics = p.statistics + (seat.row_head * s.time + t) * 2;
      statistics[0] = fmaf(highest[m][half], p.scale, logf(total));
      statistics[1] = 0;
    }
  }
  __syncthreads();
  put_rows<kHead, kM>(own_q, y, 1);
  __syncthreads();
  write_rows<kS, kS.own()>(results_of(static_cast<Bf16*>(p.y), s, seat), seat.first, q);
}

// ---- backward ----

// Of a query, in shared memory: the log of its sum, for powers of two, and y dy.
using QuerySums = Packed<float, 2>;

// Of each query of the block, from its gradients in shared memory.
template <FlashSizes kS>
PL_DEVICE void make_sums(const AttentionBackwardParams& p, const Seat& seat, Shared gradients, Shared sums) {
  const auto y = results_of(static_cast<const Bf16*>(p.y), p.shape, seat);
  const Share<kS> own;
#pragma unroll
  for (std::uint32_t i = 0; i < kS.own(); i += own.kAtOnce) {
    const std::uint32_t row = own.row + i, t = seat.first + row;
    float sum = 0;
    if (t < y.time && own.chunk * 8 < y.size) {
      float a[8], b[8];
      load<8>(y.at(t, own.chunk * 8), a);
      load<8>(&shared_at<const Bf16>(place<kS.head_size>(gradients, row, own.chunk)), b);
#pragma unroll
      for (int e = 0; e < 8; ++e) sum = fmaf(a[e], b[e], sum);
    }
#pragma unroll
    for (int lanes = 1; lanes < static_cast<int>(own.kChunks); lanes *= 2)
      sum += __shfl_xor_sync(kWholeWarp, sum, lanes);
    if (own.chunk != 0) continue;
    const std::size_t at = seat.row_head * y.time + t;
    shared_at<QuerySums>(sums + row * 8) = {{t < y.time ? p.statistics[at * 2] * kLog2E : 0, sum}};
    if (t < y.time) p.products[at] = sum;
  }
}

// dq_i = scale sum_j ds_ij k_j with ds_ij = p_ij (dy_i v_j - y_i dy_i)
template <FlashSizes kS>
PL_DEVICE void backward_queries(const AttentionBackwardParams& p) {
  constexpr int kHead = kS.head_size, kM = kS.warp_rows / 16, kN = kS.step / 8;
  const AttentionShape& s = p.shape;
  const Seat seat(s, kS.own(), true);
  const auto* const qkv = static_cast<const Bf16*>(p.qkv);
  const auto keys = part_of(qkv, kKeys, s, seat), values = part_of(qkv, kValues, s, seat);
  const Shared q = shared_memory(), dy = q + kS.bytes(kS.own()), k = dy + kS.bytes(kS.own()),
               v = k + kS.bytes(2 * kS.step), sums = v + kS.bytes(2 * kS.step);
  const std::uint32_t own = warp_of_block() * kS.warp_rows, mine = seat.first + own;
  const std::uint32_t end = s.time - seat.first < kS.own() ? s.time : seat.first + kS.own();

  begin_rows<kS, kS.own()>(q, part_of(qkv, kQueries, s, seat), seat.first);
  begin_rows<kS, kS.own()>(dy, results_of(static_cast<const Bf16*>(p.dy), s, seat), seat.first);
  begin_rows<kS, kS.step>(k, keys, 0);
  begin_rows<kS, kS.step>(v, values, 0);
  copies_commit();
  copies_wait<0>();
  __syncthreads();
  make_sums<kS>(p, seat, dy, sums);
  const float scale = p.scale * kLog2E;
  Sums<kM, kHead / 8> dq = {};
  for (std::uint32_t key = 0; key < end; key += kS.step) {
    const std::uint32_t turn = key / kS.step % 2, other = 1 - turn;
    rows_wait<kS>();
    __syncthreads();  // as in forward
    if (key + kS.step < end) {
      begin_rows<kS, kS.step>(k + kS.bytes(other * kS.step), keys, key + kS.step);
      begin_rows<kS, kS.step>(v + kS.bytes(other * kS.step), values, key + kS.step);
      copies_commit();
    }
    if (!kS.groups && (mine >= s.time || key >= mine + kS.warp_rows)) continue;
    Sums<kM, kN> share, slope;
    begin_multiply_rows<kS, kM, kN>(share, q + kS.bytes(own), k + kS.bytes(turn * kS.step));
    begin_multiply_rows<kS, kM, kN>(slope, dy + kS.bytes(own), v + kS.bytes(turn * kS.step));
    products_wait<kS, 0>(share[0], slope[0]);
    if (key + kS.step > mine + 1) {
      mask<kM, kN>(share, [&](std::uint32_t row, std::uint32_t column) { return key + column > mine + row; });
    }
#pragma unroll
    for (int m = 0; m < kM; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const auto [log_sum, product] =
            shared_at<const QuerySums>(sums + (own + m * 16 + half * 8 + row_of_lane()) * 8).at;
#pragma unroll
        for (int n = 0; n < kN; ++n) {
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            slope[m][n][i] = quick_exp2(fmaf(share[m][n][i], scale, -log_sum)) * (slope[m][n][i] - product);
          }
        }
      }
    }
    Left<kS, kN> left;
    begin_add_product<kS, kM, kN>(dq, slope, left, k + kS.bytes(turn * kS.step));
    products_wait<kS, 0>(dq[0], left);
  }
  __syncthreads();
  put_rows<kHead, kM>(q + kS.bytes(own), dq, p.scale);
  __syncthreads();
  write_rows<kS, kS.own()>(part_of(static_cast<Bf16*>(p.dqkv), kQueries, s, seat), seat.first, q);
}

// Statistics and products of the queries of a step, in shared memory. Zeros beyond the end, where all else is
// zero, too: a share of 1 of a gradient of 0.
template <FlashSizes kS>
PL_DEVICE void begin_sums(Shared statistics, Shared products, const AttentionBackwardParams& p,
                          std::size_t row_head, std::uint32_t first) {
  if (threadIdx.x >= kS.step) return;
  const bool there = first + threadIdx.x < p.shape.time;
  const std::size_t at = row_head * p.shape.time + (there ? first + threadIdx.x : 0);
  copy_begin<8>(statistics + threadIdx.x * 8, p.statistics + at * 2, there);
  copy_begin<4>(products + threadIdx.x * 4, p.products + at, there);
}

// dk_j = scale sum_i ds_ij q_i, dv_j = sum_i p_ij dy_i
template <FlashSizes kS>
PL_DEVICE void backward_keys(const AttentionBackwardParams& p) {
  constexpr int kHead = kS.head_size, kM = kS.warp_rows / 16, kN = kS.step / 8;
  const AttentionShape& s = p.shape;
  const Seat seat(s, kS.own(), false);
  const auto* const qkv = static_cast<const Bf16*>(p.qkv);
  const auto queries = part_of(qkv, kQueries, s, seat);
  const auto gradients = results_of(static_cast<const Bf16*>(p.dy), s, seat);
  const Shared k = shared_memory(), v = k + kS.bytes(kS.own()), q = v + kS.bytes(kS.own()),
               dy = q + kS.bytes(2 * kS.step), statistics = dy + kS.bytes(2 * kS.step),
               products = statistics + 2 * kS.step * 8;
  const std::uint32_t own = warp_of_block() * kS.warp_rows, mine = seat.first + own;
  const auto begin_step = [&](std::uint32_t query, std::uint32_t turn) {
    begin_rows<kS, kS.step>(q + kS.bytes(turn * kS.step), queries, query);
    begin_rows<kS, kS.step>(dy + kS.bytes(turn * kS.step), gradients, query);
    begin_sums<kS>(statistics + turn * kS.step * 8, products + turn * kS.step * 4, p, seat.row_head, query);
    copies_commit();
  };

  begin_rows<kS, kS.own()>(k, part_of(qkv, kKeys, s, seat), seat.first);
  begin_rows<kS, kS.own()>(v, part_of(qkv, kValues, s, seat), seat.first);
  begin_step(seat.first, 0);
  const float scale = p.scale * kLog2E;
  Sums<kM, kHead / 8> dk = {}, dv = {};
  std::uint32_t turn = 0;
  for (std::uint32_t query = seat.first; query < s.time; query += kS.step, turn ^= 1U) {
    rows_wait<kS>();
    __syncthreads();  // as in forward
    if (query + kS.step < s.time) begin_step(query + kS.step, turn ^ 1U);
    if (!kS.groups && (mine >= s.time || query + kS.step <= mine)) continue;
    const Shared step_q = q + kS.bytes(turn * kS.step), step_dy = dy + kS.bytes(turn * kS.step);
    Sums<kM, kN> share, slope;
    begin_multiply_rows<kS, kM, kN>(share, k + kS.bytes(own), step_q);
    if constexpr (kByGroups<kS>) begin_multiply_rows<kS, kM, kN>(slope, v + kS.bytes(own), step_dy);
    products_wait<kS, 1>(share[0]);
    if (query + 1 < mine + kS.warp_rows) {
      mask<kM, kN>(share,
                   [&](std::uint32_t row, std::uint32_t column) { return mine + row > query + column; });
    }
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const std::uint32_t column = turn * kS.step + n * 8 + column_of_lane() + odd;
        const float log_sum = shared_at<const float>(statistics + column * 8) * kLog2E;
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          share[m][n][odd] = quick_exp2(fmaf(share[m][n][odd], scale, -log_sum));
          share[m][n][odd + 2] = quick_exp2(fmaf(share[m][n][odd + 2], scale, -log_sum));
        }
      }
    }
    Left<kS, kN> shares, slopes;
    begin_add_product<kS, kM, kN>(dv, share, shares, step_dy);
    if constexpr (!kByGroups<kS>) begin_multiply_rows<kS, kM, kN>(slope, v + kS.bytes(own), step_dy);
    products_wait<kS, 1>(slope[0]);
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const std::uint32_t column = turn * kS.step + n * 8 + column_of_lane() + odd;
        const float product = shared_at<const float>(products + column * 4);
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          slope[m][n][odd] = share[m][n][odd] * (slope[m][n][odd] - product);
          slope[m][n][odd + 2] = share[m][n][odd + 2] * (slope[m][n][odd + 2] - product);
        }
      }
    }
    begin_add_product<kS, kM, kN>(dk, slope, slopes, step_q);
    products_wait<kS, 0>(dv[0], dk[0], shares, slopes);
  }
  __syncthreads();
  put_rows<kHead, kM>(k + kS.bytes(own), dk, p.scale);
  put_rows<kHead, kM>(v + kS.bytes(own), dv, 1);
  __syncthreads();
  auto* const dqkv = static_cast<Bf16*>(p.dqkv);
  write_rows<kS, kS.own()>(part_of(dqkv, kKeys, s, seat), seat.first, k);
  write_rows<kS, kS.own()>(part_of(dqkv, kValues, s, seat), seat.first, v);
}

}  // namespace

#define PL_FLASH_ATTENTION(name, head, sizes)                                                               \
  PL_KERNEL_SHARED(kFlashThreads, sizes.forward.blocks, name##_attention_##head, AttentionParams, p) {      \
    forward<sizes.forward>(p);                                                                              \
  }                                                                                                         \
  PL_KERNEL_SHARED(kFlashThreads, sizes.queries.blocks, name##_attention_queries_##head,                    \
                   AttentionBackwardParams, p) {                                                            \
    backward_queries<sizes.queries>(p);                                                                     \
  }                                                                                                         \
  PL_KERNEL_SHARED(kFlashThreads, sizes.keys.blocks, name##_attention_keys_##head, AttentionBackwardParams, \
                   p) {                                                                                     \
    backward_keys<sizes.keys>(p);                                                                           \
  }

PL_FLASH_ATTENTION(flash, 64, kFlash64)
PL_FLASH_ATTENTION(flash, 128, kFlash128)
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
PL_FLASH_ATTENTION(hopper, 64, kHopper64)
#endif

}  // namespace paceline::cuda
