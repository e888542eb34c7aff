#pragma once

// What the kernels of windows.cu take: windows that slide over images, for pooling and for convolutions as
// products. Images are row-major, [images, channels, height, width]; counts of elements are below 2^32.

#include <cstdint>

namespace paceline::cuda {

inline constexpr int kWindowThreads = 256;
inline constexpr int kTransposeSide = 32;  // of a block's tile; a block has kTransposeSide x 8 threads
inline constexpr int kTransposeRows = 8;

struct WindowShape {
  std::uint32_t images = 0, channels = 0;
  std::uint32_t height = 0, width = 0;
  std::uint32_t out_height = 0, out_width = 0;        // places of the window
  std::uint32_t window_height = 0, window_width = 0;  // at most 256 elements where places are kept
  std::uint32_t stride = 1;
  std::uint32_t padding = 0;  // zeros on each side

  constexpr std::uint32_t positions() const { return images * out_height * out_width; }
  constexpr std::uint32_t patch() const { return channels * window_height * window_width; }
  constexpr std::uint32_t inputs() const { return images * channels * height * width; }
};

// columns[position][channel, row of the window, column of it] = x at that place, 0 in the padding. im2col.
struct ColumnsParams {
  const void* x;
  void* columns;  // [positions(), patch()]
  WindowShape shape;
};
// dx = the sum of all columns that were taken from there, in the order of the window's elements. col2im.
struct ImagesParams {
  const void* columns;
  void* dx;
  WindowShape shape;
};

// y = the window's highest element (the first of equals; a NaN is highest), or 0 where it is negative and
// `relu`. Without padding.
struct MaxPoolParams {
  const void* x;
  void* y;               // [images, channels, out_height, out_width]
  std::uint8_t* places;  // of the highest in its window, as y; null: none
  WindowShape shape;
  bool relu;
};
// dx = the sum of dy over the windows whose highest it was; with y, only of those whose y is positive (or
// NaN, which is the gradient then).
struct MaxPoolBackwardParams {
  const void* dy;
  const std::uint8_t* places;
  const void* y;  // null: none
  void* dx;
  WindowShape shape;
};

// to[m][c][r] = from[m][r][c] of each of `matrices` matrices: blockIdx.y counts them. A block for each tile.
struct TransposeParams {
  const void* from;  // [matrices, rows, columns]
  void* to;          // [matrices, columns, rows]
  std::uint32_t rows;
  std::uint32_t columns;
};

}  // namespace paceline::cuda
