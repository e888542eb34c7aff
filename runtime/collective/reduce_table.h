#pragma once

// What the files reduce_*.cc offer to reduce.cc: one function per element type, operation and way to store.
// Plain types only: some of these files are compiled for processors that this one may not be.

#include <cstddef>

namespace paceline::collective {

inline constexpr int kSumIndex = 0, kMinIndex = 1, kMaxIndex = 2, kOpIndices = 3;

struct ReduceArrays {
  std::byte* const* outputs;
  int output_count;
  const std::byte* const* inputs;
  int input_count;
  std::size_t bytes;  // of each array; a multiple of the element's size
  int divisor;
};

using ReduceFunction = void (*)(const ReduceArrays&);
struct ReduceRow {
  ReduceFunction functions[kOpIndices][2];  // by operation, and [1] for streaming stores
};
struct ReduceTable {
  ReduceRow rows[6];  // by DType
};

extern const ReduceTable kReducePortable;
#if defined(__x86_64__)
extern const ReduceTable kReduceAvx2;    // AVX2, F16C
extern const ReduceTable kReduceAvx512;  // AVX-512 F, BW, DQ, VL
#endif

}  // namespace paceline::collective
