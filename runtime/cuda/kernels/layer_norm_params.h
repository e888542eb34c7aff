#pragma once

// What the kernels of layer_norm.cu take. Activations are of the kernel's type, [rows, columns]; gain, bias
// and statistics fp32. A row of whole 16 bytes has kernels of its own; the names of those for other rows end
// in _any, and of those for rows of more than kMostHeldNormColumns in _wide.

#include <cstdint>

namespace paceline::cuda {

inline constexpr int kNormThreads = 256;
inline constexpr int kNormLaneColumns = 32, kNormLaneAny = 16;  // of a row, that each thread has
inline constexpr int kNormBackwardThreads = 512;
inline constexpr int kOwnF32 = 2, kOwnBf16 = 1, kOwnAny = 8;  // vectors, or elements, of each thread
inline constexpr std::uint32_t kMostHeldNormColumns = 4096;

// Warps of a block that have a row together, of threads that have so many columns of it, of rows that are
// held: 1, 2, 4 or 8. Where it is not one, two barriers for each row.
constexpr std::uint32_t norm_row_warps(std::uint32_t columns, std::uint32_t lane_columns) {
  std::uint32_t warps = 1;
  while (warps * 32 * lane_columns < columns) warps *= 2;
  return warps;
}

struct LayerNormParams {
  const void* x;
  const void* residual;  // null: the rows are x
  void* sum;             // x + residual; may be either
  const float* gain;
  const float* bias;
  void* y;
  float* means;     // of rows
  float* inverses;  // 1 / sqrt(variance + epsilon)
  float epsilon;
  std::uint32_t rows;
  std::uint32_t columns;
};

// A block goes over every gridDim.x-th row; each thread has its own columns.
struct LayerNormBackwardParams {
  const void* x;  // the rows as they were normalised
  const void* dy;
  const void* through;  // added to the result; null: nothing
  void* dx;             // may be dy or through
  const float* gain;
  const float* means;
  const float* inverses;
  float* partials;  // [blocks, 2, columns]: gradients of gain and bias of each block's rows
  std::uint32_t rows;
  std::uint32_t columns;
};

}  // namespace paceline::cuda
