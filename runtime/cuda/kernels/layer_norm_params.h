#pragma once

// What the kernels of layer_norm.cu take. Activations are of the kernel's type, [rows, columns]; gain, bias
// and statistics fp32. A row of whole 16 bytes has kernels of its own; the names of those for other rows end
// in _any.

#include <cstdint>

namespace paceline::cuda {

inline constexpr int kNormThreads = 256;  // a warp for each row
inline constexpr int kNormBackwardThreads = 512;
inline constexpr int kOwnF32 = 2, kOwnBf16 = 1, kOwnAny = 8;  // vectors, or elements, of each thread
inline constexpr std::uint32_t kMostNormColumns = 4096;

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
