#pragma once

// Products by groups of four warps, of compute capability 9.0 (PTX ISA: wgmma.mma_async, sm_90a): 64 rows, of
// which each warp has 16. The right operand lies in shared memory, the left one there or in registers; the
// sums are in registers, laid out as tensor_core.h's accumulators. A product is under way from its call on,
// until group_wait() says that it is done: meanwhile nobody touches its registers, nor what it reads in
// shared memory. All threads of a group call each function together. On other targets, and on the emulated
// GPU, the functions are empty, and nobody calls them.

#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/tensor_core.h"

namespace paceline::cuda {

// An operand of rows of 64 elements whose chunks lie as flash_rows.h's place() says, which is the swizzle of
// 128 bytes, from a multiple of 1024 bytes of shared memory on. A sixteenth of a distance in bytes may be
// added to it: of 16 columns, or of rows in eights.
PL_DEVICE std::uint64_t group_operand(Shared rows) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62U, kEightRows = std::uint64_t{1024 / 16} << 32U,
                          kUnused = std::uint64_t{1} << 16U;
  return kSwizzle128 | kEightRows | kUnused | ((rows & 0x3ffffU) >> 4U);
}

// Registers that a group's products read or write from here on have what was written to them before.
PL_DEVICE void group_begin() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
// The products since the last call are one batch.
PL_DEVICE void group_commit() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// Until no more than so many batches are under way. Registers and shared memory of the others are free.
template <int kBatches>
PL_DEVICE void group_wait() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kBatches) : "memory");
#endif
}
// Products see what was copied into shared memory before.
PL_DEVICE void group_sees_copies() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
// The compiler moves nothing that reads or writes these across here.
template <int kN>
PL_DEVICE void group_keep([[maybe_unused]] float (&sums)[kN][4]) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#pragma unroll
  for (int n = 0; n < kN; ++n)
    asm volatile("" : "+f"(sums[n][0]), "+f"(sums[n][1]), "+f"(sums[n][2]), "+f"(sums[n][3])::"memory");
#endif
}
template <int kN>
PL_DEVICE void group_keep([[maybe_unused]] std::uint32_t (&left)[kN][4]) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#pragma unroll
  for (int n = 0; n < kN; ++n)
    asm volatile("" : "+r"(left[n][0]), "+r"(left[n][1]), "+r"(left[n][2]), "+r"(left[n][3])::"memory");
#endif
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define PL_SUM(n) "+f"(s[n][0]), "+f"(s[n][1]), "+f"(s[n][2]), "+f"(s[n][3])
#define PL_SUMS PL_SUM(0), PL_SUM(1), PL_SUM(2), PL_SUM(3), PL_SUM(4), PL_SUM(5), PL_SUM(6), PL_SUM(7)
// Operands 0 to 31 are the sums, the last one tells whether they are added to.
#define PL_GROUP_MULTIPLY(last, operands)                                                                \
  "{ .reg .pred adds; setp.ne.b32 adds, " last                                                           \
  ", 0; "                                                                                                \
  "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "  \
  "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, " \
  "%31}, " operands "; }"
#endif

// sums (+)= a b^T: 64 rows of `left` and of `right`, 16 columns of both.
PL_DEVICE void group_multiply([[maybe_unused]] float (&s)[8][4], [[maybe_unused]] std::uint64_t left,
                              [[maybe_unused]] std::uint64_t right, [[maybe_unused]] bool adds) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile(PL_GROUP_MULTIPLY("%34", "%32, %33, adds, 1, 1, 0, 0")
               : PL_SUMS
               : "l"(left), "l"(right), "r"(static_cast<int>(adds)));
#endif
}
// sums += a b: 16 rows of `right`, of 64 columns; a's tiles as multiply_add's, 16 rows for each warp.
PL_DEVICE void group_multiply([[maybe_unused]] float (&s)[8][4],
                              [[maybe_unused]] const std::uint32_t (&left)[4],
                              [[maybe_unused]] std::uint64_t right) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile(PL_GROUP_MULTIPLY("%37", "{%32, %33, %34, %35}, %36, adds, 1, 1, 1")
               : PL_SUMS
               : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"(1));
#endif
}

}  // namespace paceline::cuda
