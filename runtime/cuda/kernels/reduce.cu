// Sums over the rows of a matrix, in two steps and a fixed order: parts of the rows side by side, then the
// parts one after the other.

#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"
#include "runtime/cuda/kernels/reduce_params.h"

namespace paceline::cuda {
namespace {

constexpr std::uint32_t kAtOnce = 4;        // rows that a thread has on their way together
constexpr std::uint32_t kPartsAtOnce = 16;  // and parts

template <typename T, int kWidth>
PL_DEVICE void column_sums(const ColumnSumsParams& p) {
  __shared__ float sums[kColumnRows][kColumnLanes * kWidth];
  const std::uint32_t lane = threadIdx.x % kColumnLanes, y = threadIdx.x / kColumnLanes;
  const std::uint32_t first = (blockIdx.x * kColumnLanes + lane) * kWidth;
  float total[kWidth] = {};
  if (first < p.columns) {
    // Every `step`-th row.
    const std::uint32_t first_row = blockIdx.y * kColumnRows + y, step = gridDim.y * kColumnRows;
    const std::uint32_t rows = first_row < p.rows ? (p.rows - first_row - 1) / step + 1 : 0;
    const T* x = static_cast<const T*>(p.x) + static_cast<std::size_t>(first_row) * p.columns + first;
    const std::size_t stride = static_cast<std::size_t>(step) * p.columns;
    for (std::uint32_t r = 0; r < rows; r += kAtOnce, x += kAtOnce * stride)
      add_vectors<kAtOnce>(total, rows - r, [&](std::uint32_t i) { return x + i * stride; });
  }
#pragma unroll
  for (int k = 0; k < kWidth; ++k) sums[y][lane * kWidth + k] = total[k];
  __syncthreads();
  if (y != 0 || first >= p.columns) return;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    for (int other = 1; other < kColumnRows; ++other) total[k] += sums[other][lane * kWidth + k];
  }
  store<kWidth>(p.partials + static_cast<std::size_t>(blockIdx.y) * p.columns + first, total);
}

}  // namespace

PL_KERNEL(kColumnLanes* kColumnRows, column_sums_f32, ColumnSumsParams, p) {
  column_sums<float, kWide<float>>(p);
}
PL_KERNEL(kColumnLanes* kColumnRows, column_sums_bf16, ColumnSumsParams, p) {
  column_sums<Bf16, kWide<Bf16>>(p);
}
PL_KERNEL(kColumnLanes* kColumnRows, column_sums_any_f32, ColumnSumsParams, p) {
  column_sums<float, 1>(p);
}
PL_KERNEL(kColumnLanes* kColumnRows, column_sums_any_bf16, ColumnSumsParams, p) {
  column_sums<Bf16, 1>(p);
}

PL_KERNEL(kJoinLanes* kJoinRows, join_columns, JoinColumnsParams, p) {
  __shared__ float sums[kJoinRows][kJoinLanes];
  const std::uint32_t lane = threadIdx.x % kJoinLanes, y = threadIdx.x / kJoinLanes;
  const std::uint32_t column = blockIdx.x * kJoinLanes + lane;
  float sum[1] = {};
  if (column < p.columns) {
    const float* const first = p.partials + std::size_t{blockIdx.y} * p.columns + column;
    for (std::uint32_t part = y; part < p.parts; part += kJoinRows * kPartsAtOnce) {
      add_vectors<kPartsAtOnce>(sum, (p.parts - part - 1) / kJoinRows + 1, [&](std::uint32_t i) {
        return first + static_cast<std::size_t>(part + i * kJoinRows) * gridDim.y * p.columns;
      });
    }
  }
  float total = sum[0];
  sums[y][lane] = total;
  __syncthreads();
  if (y != 0 || column >= p.columns) return;
  for (int other = 1; other < kJoinRows; ++other) total += sums[other][lane];
  float* const out = p.out[blockIdx.y] + column;
  *out = p.accumulate ? *out + total : total;
}

}  // namespace paceline::cuda
