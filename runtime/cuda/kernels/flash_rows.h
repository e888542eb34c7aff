#pragma once

// What flash_attention.cu is made of: rows of bf16 between memory, shared memory and registers, and their
// products on tensor cores. A block has kFlashThreads threads.

#include "runtime/cuda/kernels/attention_params.h"
#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"
#include "runtime/cuda/kernels/tensor_core.h"
#include "runtime/cuda/kernels/warp_group.h"

namespace paceline::cuda {

inline constexpr unsigned kFlashThreads = kAttentionWarps * kWarp;

// Vectors of bf16 in memory, one for each time.
template <typename T>
struct Vectors {
  T* first;
  std::uint32_t stride, time, size;

  PL_DEVICE T* at(std::uint32_t t, std::uint32_t c) const {
    return first + (static_cast<std::size_t>(t) * stride + c);
  }
};
// ---- rows in shared memory ----

// 16 bytes of a row of kHead elements. Those of eight rows below each other are in different banks.
template <int kHead>
PL_DEVICE Shared place(Shared rows, std::uint32_t row, std::uint32_t chunk) {
  return rows + row * (kHead * 2) + ((chunk ^ (row & 7U)) << 4U);
}

// What each thread moves of rows: one chunk of every kAtOnce-th row.
template <FlashSizes kS>
struct Share {
  static constexpr std::uint32_t kChunks = kS.head_size / 8, kAtOnce = kFlashThreads / kChunks;
  std::uint32_t row = threadIdx.x / kChunks, chunk = threadIdx.x % kChunks;
};

// Zeros beyond the end of time or vector.
template <FlashSizes kS, int kRows>
PL_DEVICE void begin_rows(Shared rows, const Vectors<const Bf16>& from, std::uint32_t first) {
  const Share<kS> own;
  const std::uint32_t t = first + own.row;
  const Bf16* address = from.at(t, own.chunk * 8);
  const std::size_t stride = std::size_t{from.stride} * own.kAtOnce;
  const std::uint32_t time = own.chunk * 8 < from.size ? from.time : 0;
#pragma unroll
  for (std::uint32_t i = 0; i < kRows; i += own.kAtOnce, address += stride)
    copy_begin<16>(place<kS.head_size>(rows, own.row + i, own.chunk), address, t + i < time);
}

template <FlashSizes kS, int kRows>
PL_DEVICE void write_rows(const Vectors<Bf16>& to, std::uint32_t first, Shared rows) {
  const Share<kS> own;
#pragma unroll
  for (std::uint32_t i = 0; i < kRows; i += own.kAtOnce) {
    const std::uint32_t t = first + own.row + i;
    if (t >= to.time || own.chunk * 8 >= to.size) continue;
    using Chunk = Packed<Bf16, 8>;
    *reinterpret_cast<Chunk*>(to.at(t, own.chunk * 8)) =
        shared_at<const Chunk>(place<kS.head_size>(rows, own.row + i, own.chunk));
  }
}

// ---- products ----

// kM x kN accumulators: of 16 kM rows and 8 kN columns of a warp.
template <int kM, int kN>
using Sums = float[kM][kN][4];

// Where a lane's accumulators are: rows row() and row() + 8 of each 16; columns column() and the next of each
// 8.
PL_DEVICE std::uint32_t row_of_lane() {
  return lane_of_warp() / 4;
}
PL_DEVICE std::uint32_t column_of_lane() {
  return lane_of_warp() % 4 * 2;
}

template <int kM, int kN>
PL_DEVICE void clear(Sums<kM, kN>& sums) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) sums[m][n][0] = sums[m][n][1] = sums[m][n][2] = sums[m][n][3] = 0;
  }
}

// sums = A B^T, both rows of shared memory.
template <int kHead, int kM, int kN>
PL_DEVICE void multiply_rows(Sums<kM, kN>& sums, Shared a, Shared b) {
  const std::uint32_t lane = lane_of_warp();
  clear<kM, kN>(sums);
#pragma unroll
  for (int k = 0; k < kHead / 16; ++k) {
    std::uint32_t left[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) load_tiles(place<kHead>(a, m * 16 + lane % 16, 2 * k + lane / 16), left[m]);
#pragma unroll
    for (int n = 0; n < kN; n += 2) {
      std::uint32_t right[4];
      load_tiles(place<kHead>(b, n * 8 + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2), right);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add(sums[m][n], left[m], right[0], right[1]);
        multiply_add(sums[m][n + 1], left[m], right[2], right[3]);
      }
    }
  }
}

// Tiles of a left operand, of what was summed up, rounded.
template <int kN>
PL_DEVICE void pack(std::uint32_t (&tiles)[4], const float (&p)[kN][4], int k) {
  tiles[0] = packed(p[k][0], p[k][1]);
  tiles[1] = packed(p[k][2], p[k][3]);
  tiles[2] = packed(p[k + 1][0], p[k + 1][1]);
  tiles[3] = packed(p[k + 1][2], p[k + 1][3]);
}

// sums += P B, where P is what was summed up before, rounded, and B rows of shared memory.
template <int kHead, int kM, int kN>
PL_DEVICE void add_product(Sums<kM, kHead / 8>& sums, const Sums<kM, kN>& p, Shared b) {
  const std::uint32_t lane = lane_of_warp();
#pragma unroll
  for (int k = 0; k < kN; k += 2) {
    std::uint32_t left[kM][4];
#pragma unroll
    for (int m = 0; m < kM; ++m) pack(left[m], p[m], k);
#pragma unroll
    for (int d = 0; d < kHead / 8; d += 2) {
      std::uint32_t right[4];
      load_tiles_transposed(place<kHead>(b, k * 8 + lane % 16, d + lane / 16), right);
#pragma unroll
      for (int m = 0; m < kM; ++m) {
        multiply_add(sums[m][d], left[m], right[0], right[1]);
        multiply_add(sums[m][d + 1], left[m], right[2], right[3]);
      }
    }
  }
}

// ---- the same, by whoever makes products of these sizes ----

// The emulated GPU has no groups: there each warp makes its own 16 rows of a group's product.
#if defined(__CUDACC__)
template <FlashSizes kS>
inline constexpr bool kByGroups = kS.groups;
#else
template <FlashSizes kS>
inline constexpr bool kByGroups = false;
#endif

// Products that are begun are done once products_wait() says so: until no more than so many calls' are under
// way. What they take, registers too, stays until then. All warps of a group call each.
template <FlashSizes kS, int kM, int kN>
PL_DEVICE void begin_multiply_rows(Sums<kM, kN>& sums, Shared a, Shared b) {
  if constexpr (kByGroups<kS>) {
    const std::uint64_t left = group_operand(a - warp_of_block() * kS.bytes(16)), right = group_operand(b);
    group_keep(sums[0]);
    group_begin();
#pragma unroll
    for (int k = 0; k < static_cast<int>(kS.head_size) / 16; ++k)
      group_multiply(sums[0], left + k * (32 / 16), right + k * (32 / 16), k > 0);
    group_commit();
  } else {
    multiply_rows<kS.head_size, kM, kN>(sums, a, b);
  }
}
// The left operand of a product that is under way.
template <FlashSizes kS, int kN>
using Left = std::uint32_t[kByGroups<kS> ? kN / 2 : 1][4];
template <FlashSizes kS, int kM, int kN>
PL_DEVICE void begin_add_product(Sums<kM, kS.head_size / 8>& sums, const Sums<kM, kN>& p, Left<kS, kN>& left,
                                 Shared b) {
  if constexpr (kByGroups<kS>) {
#pragma unroll
    for (int k = 0; k < kN / 2; ++k) pack(left[k], p[0], 2 * k);
    const std::uint64_t right = group_operand(b);
    group_keep(left);
    group_keep(sums[0]);
    group_begin();
#pragma unroll
    for (int k = 0; k < kN / 2; ++k) group_multiply(sums[0], left[k], right + k * (kS.bytes(16) / 16));
    group_commit();
  } else {
    add_product<kS.head_size, kM, kN>(sums, p, b);
  }
}
template <FlashSizes kS, int kCalls, typename... Registers>
PL_DEVICE void products_wait(Registers&... done) {
  if constexpr (kByGroups<kS>) {
    group_wait<kCalls>();
    (group_keep(done), ...);
  }
}
// This thread's rows are there after it, and everybody's behind a barrier.
template <FlashSizes kS>
PL_DEVICE void rows_wait() {
  copies_wait<0>();
  if constexpr (kByGroups<kS>) group_sees_copies();
}

// Rounded, as rows of shared memory.
template <int kHead, int kM>
PL_DEVICE void put_rows(Shared rows, const Sums<kM, kHead / 8>& sums, float factor) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int d = 0; d < kHead / 8; ++d) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const Shared at = place<kHead>(rows, m * 16 + half * 8 + row_of_lane(), d) + column_of_lane() * 2;
        shared_at<std::uint32_t>(at) =
            packed(factor * sums[m][d][2 * half], factor * sums[m][d][2 * half + 1]);
      }
    }
  }
}

// Hides what lies in the future: later(row, column) of the element.
template <int kM, int kN, typename Later>
PL_DEVICE void mask(Sums<kM, kN>& scores, Later later) {
#pragma unroll
  for (int m = 0; m < kM; ++m) {
#pragma unroll
    for (int n = 0; n < kN; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (later(m * 16 + i / 2 * 8 + row_of_lane(), n * 8 + column_of_lane() + i % 2))
          scores[m][n][i] = -INFINITY;
      }
    }
  }
}

}  // namespace paceline::cuda
