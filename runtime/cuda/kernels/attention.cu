// Causal self-attention without a matrix of scores in memory (Dao et al. 2022, FlashAttention), on the GPU's
// plain arithmetic: for every type and head size; see attention.h for what it is for.
//
// A warp has one query (or, for the gradients of keys and values, one key) and goes over the others 32 at a
// time: each lane makes the score of one of them, and then each lane adds up its own elements of the result,
// lane, lane + 32, ... Nothing is added by several warps: the same bits from run to run.
//
// Of a head beyond kMostHeldHeadSize each warp of a column of blocks makes so many elements of the result,
// and all of them make the scores for themselves.

#include "runtime/cuda/kernels/attention_params.h"
#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"

namespace paceline::cuda {
namespace {

// Where a warp works: time `t` of one head of one row.
struct Seat {
  std::size_t row_head;  // row * heads + head
  std::size_t first;     // position of the row's time 0
  std::uint32_t head, t;
};

PL_DEVICE bool seat_of(const AttentionShape& s, Seat& seat) {
  const std::size_t warp = static_cast<std::size_t>(blockIdx.x) * kAttentionWarps + warp_of_block();
  seat.row_head = warp / s.time;
  seat.t = static_cast<std::uint32_t>(warp % s.time);
  seat.head = static_cast<std::uint32_t>(seat.row_head % s.heads);
  seat.first = seat.row_head / s.heads * s.time;
  return seat.row_head < static_cast<std::size_t>(s.rows) * s.heads;
}

// Vectors of one head. kPart: 0 queries, 1 keys, 2 values.
template <int kPart, typename T>
PL_DEVICE T* part_of(T* qkv, const AttentionShape& s, const Seat& seat, std::uint32_t t) {
  const std::size_t width = static_cast<std::size_t>(s.heads) * s.head_size;
  return qkv + (seat.first + t) * 3 * width + kPart * width +
         static_cast<std::size_t>(seat.head) * s.head_size;
}
template <typename T>
PL_DEVICE T* result_of(T* y, const AttentionShape& s, const Seat& seat, std::uint32_t t) {
  const std::size_t width = static_cast<std::size_t>(s.heads) * s.head_size;
  return y + (seat.first + t) * width + static_cast<std::size_t>(seat.head) * s.head_size;
}

// The own vectors of a block's warps, each for all lanes of its warp: held in shared memory, or where they
// are.
struct Held {
  float at[kAttentionWarps][kMostHeldHeadSize];
  template <typename T>
  PL_DEVICE void read(const T* from, std::uint32_t n) {
    for (std::uint32_t c = lane_of_warp(); c < n; c += kWarp) at[warp_of_block()][c] = to_float(from[c]);
  }
  PL_DEVICE float operator[](std::uint32_t c) const { return at[warp_of_block()][c]; }
};
template <typename T>
struct Pointed {
  const T* at[kAttentionWarps];
  PL_DEVICE void read(const T* from, std::uint32_t) {
    if (lane_of_warp() == 0) at[warp_of_block()] = from;
  }
  PL_DEVICE float operator[](std::uint32_t c) const { return to_float(at[warp_of_block()][c]); }
};

template <typename Own, typename T>
PL_DEVICE float dot(const Own& own, const T* x, std::uint32_t n) {
  float sum = 0;
  for (std::uint32_t c = 0; c < n; ++c) sum = fmaf(own[c], to_float(x[c]), sum);
  return sum;
}

// kOwn: elements that each lane makes of a result.
template <typename T_, int kOwn_>
struct WholeHead {
  using T = T_;
  using Own = Held;
  static constexpr int kOwn = kOwn_;
  PL_DEVICE static std::uint32_t first() { return 0; }
};
template <typename T_>
struct PartOfHead {
  using T = T_;
  using Own = Pointed<T>;
  static constexpr int kOwn = kMostHeldHeadSize / kWarp;
  PL_DEVICE static std::uint32_t first() { return blockIdx.y * kMostHeldHeadSize; }
};

// What each lane adds up of a result, which begins at `first` of each vector.
template <int kOwn>
struct Elements {
  std::uint32_t first;
  float at[kOwn] = {};
  PL_DEVICE explicit Elements(std::uint32_t from) : first(from) {}
  template <typename T>
  PL_DEVICE void add(float factor, const T* x, std::uint32_t n) {
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const std::uint32_t c = first + lane_of_warp() + k * kWarp;
      if (c < n) at[k] = fmaf(factor, to_float(x[c]), at[k]);
    }
  }
  PL_DEVICE void scale(float factor) {
#pragma unroll
    for (int k = 0; k < kOwn; ++k) at[k] *= factor;
  }
  template <typename T>
  PL_DEVICE void write(T* y, std::uint32_t n) const {
#pragma unroll
    for (int k = 0; k < kOwn; ++k) {
      const std::uint32_t c = first + lane_of_warp() + k * kWarp;
      if (c < n) y[c] = rounded<T>(at[k]);
    }
  }
};

template <typename Head>
PL_DEVICE void forward(const AttentionParams& p) {
  using T = typename Head::T;
  __shared__ typename Head::Own query;
  const AttentionShape& s = p.shape;
  Seat seat;
  const bool has = seat_of(s, seat);
  const T* const qkv = static_cast<const T*>(p.qkv);
  if (has) query.read(part_of<0>(qkv, s, seat, seat.t), s.head_size);
  __syncthreads();
  if (!has) return;

  float highest = -INFINITY, sum = 0;
  Elements<Head::kOwn> y(Head::first());
  for (std::uint32_t first = 0; first <= seat.t; first += kWarp) {
    const std::uint32_t key = first + lane_of_warp();
    const float score =
        key <= seat.t ? p.scale * dot(query, part_of<1>(qkv, s, seat, key), s.head_size) : -INFINITY;
    const float before = highest, most = warp_max(score);
    highest = most > highest ? most : highest;
    const float share = key <= seat.t ? expf(score - highest) : 0.0F;
    const float kept = before == highest ? 1.0F : expf(before - highest);
    sum = sum * kept + warp_sum(share);
    y.scale(kept);
    const std::uint32_t keys = seat.t + 1 - first < kWarp ? seat.t + 1 - first : kWarp;
    for (std::uint32_t k = 0; k < keys; ++k)
      y.add(__shfl_sync(kWholeWarp, share, k), part_of<2>(qkv, s, seat, first + k), s.head_size);
  }
  y.scale(1 / sum);
  y.write(result_of(static_cast<T*>(p.y), s, seat, seat.t), s.head_size);
  if (lane_of_warp() == 0 && Head::first() == 0) {
    float* const statistics = p.statistics + (seat.row_head * s.time + seat.t) * 2;
    statistics[0] = highest + logf(sum);
    statistics[1] = 0;
  }
}

// dq_i = scale sum_j ds_ij k_j with ds_ij = p_ij (dy_i v_j - y_i dy_i)
template <typename Head>
PL_DEVICE void backward_queries(const AttentionBackwardParams& p) {
  using T = typename Head::T;
  __shared__ typename Head::Own query, gradient;
  const AttentionShape& s = p.shape;
  Seat seat;
  const bool has = seat_of(s, seat);
  const T* const qkv = static_cast<const T*>(p.qkv);
  if (has) {
    query.read(part_of<0>(qkv, s, seat, seat.t), s.head_size);
    gradient.read(result_of(static_cast<const T*>(p.dy), s, seat, seat.t), s.head_size);
  }
  __syncthreads();
  if (!has) return;

  const T* const y = result_of(static_cast<const T*>(p.y), s, seat, seat.t);
  float product = 0;
  for (std::uint32_t c = lane_of_warp(); c < s.head_size; c += kWarp)
    product = fmaf(gradient[c], to_float(y[c]), product);
  product = warp_sum(product);
  const std::size_t own = seat.row_head * s.time + seat.t;
  if (lane_of_warp() == 0 && Head::first() == 0) p.products[own] = product;
  const float log_sum = p.statistics[own * 2];

  Elements<Head::kOwn> dq(Head::first());
  for (std::uint32_t first = 0; first <= seat.t; first += kWarp) {
    const std::uint32_t key = first + lane_of_warp();
    float slope = 0;
    if (key <= seat.t) {
      const float share = expf(p.scale * dot(query, part_of<1>(qkv, s, seat, key), s.head_size) - log_sum);
      slope = share * (dot(gradient, part_of<2>(qkv, s, seat, key), s.head_size) - product);
    }
    const std::uint32_t keys = seat.t + 1 - first < kWarp ? seat.t + 1 - first : kWarp;
    for (std::uint32_t k = 0; k < keys; ++k)
      dq.add(__shfl_sync(kWholeWarp, slope, k), part_of<1>(qkv, s, seat, first + k), s.head_size);
  }
  dq.scale(p.scale);
  dq.write(part_of<0>(static_cast<T*>(p.dqkv), s, seat, seat.t), s.head_size);
}

// dk_j = scale sum_i ds_ij q_i, dv_j = sum_i p_ij dy_i
template <typename Head>
PL_DEVICE void backward_keys(const AttentionBackwardParams& p) {
  using T = typename Head::T;
  __shared__ typename Head::Own key, value;
  const AttentionShape& s = p.shape;
  Seat seat;
  const bool has = seat_of(s, seat);
  const T* const qkv = static_cast<const T*>(p.qkv);
  if (has) {
    key.read(part_of<1>(qkv, s, seat, seat.t), s.head_size);
    value.read(part_of<2>(qkv, s, seat, seat.t), s.head_size);
  }
  __syncthreads();
  if (!has) return;

  const T* const dy = static_cast<const T*>(p.dy);
  Elements<Head::kOwn> dk(Head::first()), dv(Head::first());
  for (std::uint32_t first = seat.t; first < s.time; first += kWarp) {
    const std::uint32_t query = first + lane_of_warp();
    float share = 0, slope = 0;
    if (query < s.time) {
      const std::size_t at = seat.row_head * s.time + query;
      share = expf(p.scale * dot(key, part_of<0>(qkv, s, seat, query), s.head_size) - p.statistics[at * 2]);
      slope = share * (dot(value, result_of(dy, s, seat, query), s.head_size) - p.products[at]);
    }
    const std::uint32_t queries = s.time - first < kWarp ? s.time - first : kWarp;
    for (std::uint32_t k = 0; k < queries; ++k) {
      dk.add(__shfl_sync(kWholeWarp, slope, k), part_of<0>(qkv, s, seat, first + k), s.head_size);
      dv.add(__shfl_sync(kWholeWarp, share, k), result_of(dy, s, seat, first + k), s.head_size);
    }
  }
  dk.scale(p.scale);
  T* const dqkv = static_cast<T*>(p.dqkv);
  dk.write(part_of<1>(dqkv, s, seat, seat.t), s.head_size);
  dv.write(part_of<2>(dqkv, s, seat, seat.t), s.head_size);
}

}  // namespace

// For head sizes of up to 64, of up to kMostHeldHeadSize, and of any.
#define PL_ATTENTION(name, Params, function)                      \
  PL_KERNEL(kAttentionWarps* kWarp, name##_64_f32, Params, p) {   \
    function<WholeHead<float, 2>>(p);                             \
  }                                                               \
  PL_KERNEL(kAttentionWarps* kWarp, name##_64_bf16, Params, p) {  \
    function<WholeHead<Bf16, 2>>(p);                              \
  }                                                               \
  PL_KERNEL(kAttentionWarps* kWarp, name##_256_f32, Params, p) {  \
    function<WholeHead<float, kMostHeldHeadSize / kWarp>>(p);     \
  }                                                               \
  PL_KERNEL(kAttentionWarps* kWarp, name##_256_bf16, Params, p) { \
    function<WholeHead<Bf16, kMostHeldHeadSize / kWarp>>(p);      \
  }                                                               \
  PL_KERNEL(kAttentionWarps* kWarp, name##_any_f32, Params, p) {  \
    function<PartOfHead<float>>(p);                               \
  }                                                               \
  PL_KERNEL(kAttentionWarps* kWarp, name##_any_bf16, Params, p) { \
    function<PartOfHead<Bf16>>(p);                                \
  }

PL_ATTENTION(attention, AttentionParams, forward)
PL_ATTENTION(attention_queries, AttentionBackwardParams, backward_queries)
PL_ATTENTION(attention_keys, AttentionBackwardParams, backward_keys)

}  // namespace paceline::cuda
