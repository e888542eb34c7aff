#pragma once

// Tensor cores and what feeds them, for compute capability 8.0 and newer (PTX ISA: mma.sync.m16n8k16,
// ldmatrix, cp.async). Under the host's compiler the same functions are the emulated GPU's, which moves the
// same words between the same lanes (tests/support/fake_cuda/tensor_core.h).
//
// A tile is 8 x 8 bf16 and lies in the registers of a warp as one word for each lane: lane 4 r + c has the
// elements (r, 2c) and (r, 2c + 1), the first in the lower half. An accumulator is two tiles of fp32 below
// each other: lane 4 r + c has (r, 2c), (r, 2c + 1), (r + 8, 2c), (r + 8, 2c + 1).
//
// All lanes of a warp call load_tiles, load_tiles_transposed and multiply_add together. Shared memory is what
// the launch gives (LaunchShape and Module::kernel), by its own 32-bit addresses.

#include "runtime/cuda/kernels/portable.h"

namespace paceline::cuda {

using Shared = std::uint32_t;

// The block's shared memory, from a multiple of 1024 bytes on.
PL_DEVICE Shared shared_memory() {
#if defined(__CUDACC__)
  extern __shared__ __align__(1024) std::byte paceline_shared_memory[];
  return static_cast<Shared>(__cvta_generic_to_shared(paceline_shared_memory));
#else
  return 0;
#endif
}
template <typename T>
PL_DEVICE T& shared_at(Shared address) {
#if defined(__CUDACC__)
  return *static_cast<T*>(__cvta_shared_to_generic(address));
#else
  return *reinterpret_cast<T*>(fake_cuda::shared_memory() + address);
#endif
}

// Four tiles: lane 8 i + r gives the address of row r of tile i, 16 bytes that are aligned to 16.
PL_DEVICE void load_tiles(Shared row, std::uint32_t (&tiles)[4]) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
               : "r"(row)
               : "memory");
#else
  fake_cuda::load_tiles(&shared_at<const fake_cuda::TileRow>(row), tiles, false);
#endif
}
// The same, each tile transposed: lane 4 r + c gets the elements (2c, r) and (2c + 1, r).
PL_DEVICE void load_tiles_transposed(Shared row, std::uint32_t (&tiles)[4]) {
#if defined(__CUDACC__)
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
               : "r"(row)
               : "memory");
#else
  fake_cuda::load_tiles(&shared_at<const fake_cuda::TileRow>(row), tiles, true);
#endif
}

// sum += a b, where a is 16 x 16: the tiles at (0, 0), (8, 0), (0, 8), (8, 8); and b is 16 x 8: the tiles at
// (0, 0) and (8, 0), each transposed. In fp32.
PL_DEVICE void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                            std::uint32_t b1) {
#if defined(__CUDACC__)
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  fake_cuda::multiply_add(sum, a, b0, b1);
#endif
}

// Begins to copy kBytes (4, 8 or 16, both sides aligned to them) into shared memory, or to clear them where
// not `there`: then nothing is read. They are whole for this thread once it has waited, and for others after
// a barrier behind that.
template <int kBytes>
PL_DEVICE void copy_begin(Shared to, const void* from, bool there) {
#if defined(__CUDACC__)
  const std::uint64_t global = __cvta_generic_to_global(from);
  const int bytes = there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
  }
#else
  fake_cuda::copy_begin<kBytes>(&shared_at<std::byte>(to), from, there);
#endif
}
// What this thread has begun since the last call is one group.
PL_DEVICE void copies_commit() {
#if defined(__CUDACC__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  fake_cuda::copies_commit();
#endif
}
// Until no more than so many of this thread's last groups are under way.
template <int kGroups>
PL_DEVICE void copies_wait() {
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#else
  fake_cuda::copies_wait(kGroups);
#endif
}

// Two values, rounded as `rounded` does, as one word of a tile.
PL_DEVICE std::uint32_t packed(float low, float high) {
#if defined(__CUDA_ARCH__)
  std::uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
#else
  return rounded<Bf16>(low).bits | static_cast<std::uint32_t>(rounded<Bf16>(high).bits) << 16;
#endif
}

}  // namespace paceline::cuda
