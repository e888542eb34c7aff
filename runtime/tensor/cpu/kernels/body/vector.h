#pragma once

// F: sixteen floats at every level, so that loops, partial sums and their order are the same at each. D: the
// same in double.
//
//   zero, set, load, store      load(p, n) and store(p, x, n): the first n < 16 lanes; the others read as
//   zero
//   + - * /, fma, sqrt          fma rounds once, but twice in the portable form
//   max, min                    the second where either is NaN
//   if_less(a, b, yes, no)      a < b ? yes : no
//   keep(a, n, other)           a in the lanes before n, `other` from there on
//   power_of_two(s)             2^k where s is k + 1.5 * 2^23 and -126 <= k <= 127
//   sum, maximum                of the lanes, folded 16 -> 8 -> 4 -> 2 -> 1

#if defined(__AVX512F__)
#include "runtime/tensor/cpu/kernels/body/vector_avx512.h"
#elif defined(__AVX2__)
#include "runtime/tensor/cpu/kernels/body/vector_avx2.h"
#else
#include "runtime/tensor/cpu/kernels/body/vector_portable.h"
#endif

namespace paceline::tensor::cpu {
namespace {

// Calls full(i) for each whole vector of [0, n), and tail(i, count) for the rest if there is one.
template <typename Full, typename Tail>
inline void each_vector(std::size_t n, Full full, Tail tail) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) full(i);
  if (i < n) tail(i, n - i);
}

}  // namespace
}  // namespace paceline::tensor::cpu
