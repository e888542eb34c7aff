// Windows over images. Every result is gathered by the one thread that writes it, so that nothing is added by
// several at once.

#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/windows_params.h"

namespace paceline::cuda {
namespace {

// Where something lies: of [.., rows, columns].
struct Place {
  std::uint32_t plane, row, column;
};
PL_DEVICE Place place_of(std::uint32_t i, std::uint32_t rows, std::uint32_t columns) {
  return {i / columns / rows, i / columns % rows, i % columns};
}

template <typename T>
PL_DEVICE float value(const void* x, std::size_t i) {
  return to_float(static_cast<const T*>(x)[i]);
}
template <typename T>
PL_DEVICE void put(void* y, std::size_t i, float value) {
  static_cast<T*>(y)[i] = rounded<T>(value);
}

template <typename T>
PL_DEVICE void to_columns(const ColumnsParams& p) {
  const WindowShape& s = p.shape;
  const std::size_t n = static_cast<std::size_t>(s.positions()) * s.patch();
  for (std::size_t i = thread_of_grid(); i < n; i += threads_of_grid()) {
    const Place at = place_of(static_cast<std::uint32_t>(i / s.patch()), s.out_height, s.out_width);
    const Place in = place_of(static_cast<std::uint32_t>(i % s.patch()), s.window_height, s.window_width);
    // Unsigned: what lies before the image wraps around, and is beyond it.
    const std::uint32_t row = at.row * s.stride + in.row - s.padding,
                        column = at.column * s.stride + in.column - s.padding;
    const bool inside = row < s.height && column < s.width;
    const std::size_t from =
        (static_cast<std::size_t>(at.plane * s.channels + in.plane) * s.height + row) * s.width;
    put<T>(p.columns, i, inside ? value<T>(p.x, from + column) : 0.0F);
  }
}

// The window's element that a place of the window has at this element of the image, or none. `at`: with the
// padding.
struct Covering {
  std::uint32_t first, end;  // places of the window
};
PL_DEVICE Covering covering(std::uint32_t at, std::uint32_t window, std::uint32_t stride,
                            std::uint32_t places) {
  const std::uint32_t first = at < window ? 0 : (at - window) / stride + 1, end = at / stride + 1;
  return {first, end < places ? end : places};
}

template <typename T>
PL_DEVICE void to_images(const ImagesParams& p) {
  const WindowShape& s = p.shape;
  for (std::size_t i = thread_of_grid(); i < s.inputs(); i += threads_of_grid()) {
    const Place at = place_of(static_cast<std::uint32_t>(i), s.height, s.width);
    const std::uint32_t image = at.plane / s.channels, channel = at.plane % s.channels;
    const Covering rows = covering(at.row + s.padding, s.window_height, s.stride, s.out_height),
                   columns = covering(at.column + s.padding, s.window_width, s.stride, s.out_width);
    float sum = 0;
    // The later a place of the window, the earlier the window's element.
    for (std::uint32_t r = rows.end; r-- > rows.first;) {
      const std::uint32_t in_row = at.row + s.padding - r * s.stride;
      for (std::uint32_t c = columns.end; c-- > columns.first;) {
        const std::uint32_t in_column = at.column + s.padding - c * s.stride;
        const std::size_t position = (static_cast<std::size_t>(image) * s.out_height + r) * s.out_width + c;
        sum += value<T>(p.columns, position * s.patch() +
                                       (channel * s.window_height + in_row) * s.window_width + in_column);
      }
    }
    put<T>(p.dx, i, sum);
  }
}

template <typename T>
PL_DEVICE void pool(const MaxPoolParams& p) {
  const WindowShape& s = p.shape;
  const std::size_t n = static_cast<std::size_t>(s.positions()) * s.channels;
  for (std::size_t i = thread_of_grid(); i < n; i += threads_of_grid()) {
    const Place at = place_of(static_cast<std::uint32_t>(i), s.out_height, s.out_width);
    const std::size_t corner =
        (static_cast<std::size_t>(at.plane) * s.height + at.row * s.stride) * s.width + at.column * s.stride;
    float best = value<T>(p.x, corner);
    std::uint32_t place = 0;
    for (std::uint32_t k = 1; k < s.window_height * s.window_width; ++k) {
      const float x = value<T>(p.x, corner + k / s.window_width * s.width + k % s.window_width);
      if (x > best || x != x) {
        best = x;
        place = k;
      }
    }
    put<T>(p.y, i, p.relu && best < 0 ? 0.0F : best);
    if (p.places != nullptr) p.places[i] = static_cast<std::uint8_t>(place);
  }
}

template <typename T>
PL_DEVICE void pool_backward(const MaxPoolBackwardParams& p) {
  const WindowShape& s = p.shape;
  for (std::size_t i = thread_of_grid(); i < s.inputs(); i += threads_of_grid()) {
    const Place at = place_of(static_cast<std::uint32_t>(i), s.height, s.width);
    const Covering rows = covering(at.row, s.window_height, s.stride, s.out_height),
                   columns = covering(at.column, s.window_width, s.stride, s.out_width);
    float sum = 0;
    for (std::uint32_t r = rows.first; r < rows.end; ++r) {
      for (std::uint32_t c = columns.first; c < columns.end; ++c) {
        const std::size_t from = (static_cast<std::size_t>(at.plane) * s.out_height + r) * s.out_width + c;
        const std::uint32_t place = (at.row - r * s.stride) * s.window_width + (at.column - c * s.stride);
        if (p.places[from] != place) continue;
        const float y = p.y != nullptr ? value<T>(p.y, from) : 1.0F;
        sum += y > 0 ? value<T>(p.dy, from) : (y != y ? y : 0.0F);
      }
    }
    put<T>(p.dx, i, sum);
  }
}

template <typename T>
PL_DEVICE void transpose_of(const TransposeParams& p) {
  __shared__ T tile[kTransposeSide][kTransposeSide + 1];
  const std::uint32_t across = (p.columns + kTransposeSide - 1) / kTransposeSide;
  const std::uint32_t row = blockIdx.x / across * kTransposeSide,
                      column = blockIdx.x % across * kTransposeSide;
  const std::uint32_t lane = threadIdx.x % kTransposeSide, line = threadIdx.x / kTransposeSide;
  const std::size_t matrix = static_cast<std::size_t>(blockIdx.y) * p.rows * p.columns;
  for (std::uint32_t r = line; r < kTransposeSide; r += kTransposeRows) {
    if (row + r < p.rows && column + lane < p.columns)
      tile[r][lane] = static_cast<const T*>(
          p.from)[matrix + static_cast<std::size_t>(row + r) * p.columns + column + lane];
  }
  __syncthreads();
  for (std::uint32_t c = line; c < kTransposeSide; c += kTransposeRows) {
    if (column + c < p.columns && row + lane < p.rows)
      static_cast<T*>(p.to)[matrix + static_cast<std::size_t>(column + c) * p.rows + row + lane] =
          tile[lane][c];
  }
}

}  // namespace

#define PL_BOTH_TYPES(threads, name, Params, function) \
  PL_KERNEL(threads, name##_f32, Params, p) {          \
    function<float>(p);                                \
  }                                                    \
  PL_KERNEL(threads, name##_bf16, Params, p) {         \
    function<Bf16>(p);                                 \
  }

PL_BOTH_TYPES(kWindowThreads, im2col, ColumnsParams, to_columns)
PL_BOTH_TYPES(kWindowThreads, col2im, ImagesParams, to_images)
PL_BOTH_TYPES(kWindowThreads, max_pool, MaxPoolParams, pool)
PL_BOTH_TYPES(kWindowThreads, max_pool_backward, MaxPoolBackwardParams, pool_backward)
PL_BOTH_TYPES(kTransposeSide* kTransposeRows, transpose, TransposeParams, transpose_of)

}  // namespace paceline::cuda
