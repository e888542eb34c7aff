#pragma once

// What the kernels of elementwise.cu take. Pointers are of the device, 16-byte aligned; n counts elements.

#include <cstddef>
#include <cstdint>

namespace paceline::cuda {

inline constexpr int kElementwiseThreads = 256;

// y = f(x); y may be x. relu, gelu (GPT-2's tanh form), tanh, sigmoid; scale: y = factor * x.
struct UnaryParams {
  const void* x;
  void* y;
  float factor;
  std::size_t n;
};

// z = f(x, y); z may be x or y. add, multiply; *_backward: x is the output of relu, tanh and sigmoid, or the
// input of gelu, y the gradient of the output, z that of the input.
struct BinaryParams {
  const void* x;
  const void* y;
  void* z;
  std::size_t n;
};

// z = f(x, row): `row` has `period` elements and is used again and again; n is a multiple of them, and at
// most kMostPeriodic. A period that is no multiple of 16 bytes has kernels of its own, element by element
// (their names end in _any). add_row; bias_gelu: gelu(x + row).
inline constexpr std::size_t kMostPeriodic = std::size_t{1} << 31;
struct PeriodicParams {
  const void* x;
  const void* row;
  void* z;
  std::uint32_t n;
  std::uint32_t period;
};

}  // namespace paceline::cuda
