// Each function of kernels/tensor_core.h by itself, for tensor_core_test.cc.

#include "runtime/cuda/kernels/reduce.h"
#include "runtime/cuda/kernels/tensor_core.h"
#include "tests/unit/runtime/cuda/tensor_core_kernels.h"

namespace paceline::cuda {

// Of each lane: the sum's four words, a's four, b's two -> the sum.
PL_KERNEL(32, tensor_core_multiply, TensorCoreParams, p) {
  const std::uint32_t* const in = p.in + threadIdx.x * 10;
  float sum[4];
  std::uint32_t a[4];
  for (int i = 0; i < 4; ++i) {
    sum[i] = __uint_as_float(in[i]);
    a[i] = in[4 + i];
  }
  multiply_add(sum, a, in[8], in[9]);
  for (int i = 0; i < 4; ++i) p.out[threadIdx.x * 4 + i] = __float_as_uint(sum[i]);
}

// 32 rows of 4 words, the last row first in shared memory -> the words of each lane, as they are and
// transposed.
PL_KERNEL(32, tensor_core_tiles, TensorCoreParams, p) {
  const Shared row = shared_memory() + (31 - threadIdx.x) * 16;
  for (int i = 0; i < 4; ++i) shared_at<std::uint32_t>(row + i * 4) = p.in[threadIdx.x * 4 + i];
  __syncthreads();
  std::uint32_t tiles[4];
  load_tiles(row, tiles);
  for (int i = 0; i < 4; ++i) p.out[threadIdx.x * 4 + i] = tiles[i];
  load_tiles_transposed(row, tiles);
  for (int i = 0; i < 4; ++i) p.out[128 + threadIdx.x * 4 + i] = tiles[i];
}

// 64 threads copy 16, 8 and 4 bytes of their 8 words, the odd ones the 8 not at all; 16 and 4 bytes are the
// first group. out: of another thread the first group's words, then all of them.
PL_KERNEL(64, tensor_core_copies, TensorCoreParams, p) {
  const std::uint32_t* const in = p.in + threadIdx.x * 8;
  const unsigned neighbour = (threadIdx.x + 33) % 64;
  const Shared own = shared_memory() + threadIdx.x * 32, other = shared_memory() + neighbour * 32;
  std::uint32_t* const out = p.out + threadIdx.x * 12;
  copy_begin<16>(own, in, true);
  copy_begin<4>(own + 24, in + 6, true);
  copies_commit();
  copy_begin<8>(own + 16, in + 4, threadIdx.x % 2 == 0);
  copies_commit();
  copies_wait<1>();
  __syncthreads();
  for (int i = 0; i < 4; ++i) out[i] = shared_at<std::uint32_t>(other + i * 4);
  out[4] = shared_at<std::uint32_t>(other + 24);
  copies_wait<0>();
  __syncthreads();
  for (int i = 0; i < 7; ++i) out[5 + i] = shared_at<std::uint32_t>(other + i * 4);
}

// x, y -> both as one word; 2^x
PL_KERNEL(32, tensor_core_values, TensorCoreParams, p) {
  const std::uint32_t* const in = p.in + threadIdx.x * 2;
  p.out[threadIdx.x * 2] = packed(__uint_as_float(in[0]), __uint_as_float(in[1]));
  p.out[threadIdx.x * 2 + 1] = __float_as_uint(quick_exp2(__uint_as_float(in[0])));
}

}  // namespace paceline::cuda
