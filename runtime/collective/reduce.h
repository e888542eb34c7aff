#pragma once

// Combining arrays element by element: outputs[j][i] = inputs[0][i] op inputs[1][i] op ... op inputs[n-1][i],
// from left to right.
//
// Every version (portable, AVX2, AVX-512) gives the same bits for the same inputs:
// - F32, F64: IEEE addition in the order above. Where an operand is NaN the result is the first NaN of the
// order, made quiet.
// - BF16, F16: operands are widened to fp32, all of a call's inputs accumulated in fp32, and rounded once, to
// nearest even; NaN stays NaN.
// - I32, I64: sums wrap; the mean is cut towards zero.
// - min, max: the first NaN of the order wins, with its bits; of equal values (-0 and +0) the first.
// - divisor > 1 (the mean): the sum is divided by it before it is rounded to the type.
// One input and no divisor is a copy of the bits.
// An output may be one of the inputs; other overlaps are not allowed. Any alignment of a whole element's
// multiple or none. Pure; thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"
#include "base/simd_level.h"
#include "runtime/collective/communicator.h"

namespace paceline::collective {

// What this processor can do; asked once.
SimdLevel best_simd_level();

struct ReduceCall {
  std::span<std::byte* const> outputs;       // at least one
  std::span<const std::byte* const> inputs;  // at least one
  std::size_t count = 0;                     // elements
  DType dtype = DType::kF32;
  ReduceOp op = ReduceOp::kSum;  // kMean is kSum: give a divisor
  int divisor = 1;
  bool streaming =
      false;  // results will not be read soon: go past the caches where outputs are aligned to 64
};

void reduce(const ReduceCall& call, SimdLevel level = best_simd_level());

// memcpy that goes past the caches for large blocks that will not be read soon.
void copy_streaming(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace paceline::collective
