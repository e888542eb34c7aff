#pragma once

// Max pooling's loops. Arrays are [outer][height][width][inner]: row-major samples have outer = rows *
// channels and inner = 1, samples in blocks of channels have the block as inner, channels-last samples all
// channels. Pure; single-threaded.

#include <cstddef>
#include <cstdint>

namespace paceline::tensor::cpu {

struct PoolShape {
  std::size_t outer = 0;
  std::size_t inner = 0;
  std::size_t height = 0, width = 0;          // of x
  std::size_t out_height = 0, out_width = 0;  // of y
  std::size_t window = 0, stride = 0;
  bool relu = false;  // of y, forward
};

// y: the maximum of each window; NaN where the window holds one. places (may be null): where it lies, row *
// window + column; the first of equals.
void max_pool(const PoolShape& shape, const float* x, float* y, std::uint8_t* places);

// dx: each window's gradient at its place, zero elsewhere. With y (else null), only where y > 0: the gradient
// through a ReLU before the pooling.
void max_pool_backward(const PoolShape& shape, const float* g, const std::uint8_t* places, const float* y,
                       float* dx);

}  // namespace paceline::tensor::cpu
