#pragma once

// What the kernels of reduce.cu take.

#include <cstdint>

namespace paceline::cuda {

inline constexpr int kColumnLanes = 32;  // of a block: neighbours in a row
inline constexpr int kColumnRows = 8;
// 32 bytes of a row, so that there are blocks for all multiprocessors.
inline constexpr int kJoinLanes = 8, kJoinRows = 32;

// partials[part][c] = sum of x[r][c] over the part's rows. A block of kColumnLanes x kColumnRows threads for
// each part (blockIdx.y) and each kColumnLanes vectors of columns (blockIdx.x). Rows of whole 16 bytes, or
// the kernels whose names end in _any.
struct ColumnSumsParams {
  const void* x;  // [rows, columns]
  float* partials;
  std::uint32_t rows;
  std::uint32_t columns;
};

// out[i][c] (+)= sum of partials[part][i][c] over the parts, for i of 0 and 1 (blockIdx.y). A block of
// kJoinLanes x kJoinRows threads for each kJoinLanes columns.
struct JoinColumnsParams {
  const float* partials;  // [parts, gridDim.y, columns]
  float* out[2];
  std::uint32_t parts;
  std::uint32_t columns;
  bool accumulate;
};

}  // namespace paceline::cuda
