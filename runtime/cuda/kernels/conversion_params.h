#pragma once

// What the kernels of conversion.cu take. Pointers are of the device, 16-byte aligned.

#include <cstddef>

namespace paceline::cuda {

inline constexpr int kConversionThreads = 256;
inline constexpr int kConversionWidth = 8;  // elements of a thread at a time: 16 bytes of bf16

// y = x, in the other type; they do not overlap. narrow: fp32 to bf16; widen: bf16 to fp32.
struct ConversionParams {
  const void* x;
  void* y;
  std::size_t n;
};

}  // namespace paceline::cuda
