#pragma once

// What the kernels (*.cu of this folder) are written in: a small part of CUDA C++, so that the same source is
// compiled by nvcc for GPUs and, for the tests, by the host's compiler (tests/support/fake_cuda/device.h,
// included before this): threadIdx, blockIdx, blockDim, gridDim, __syncthreads(), __shfl_xor_sync()
// and __shfl_sync() over whole warps, __shared__ arrays of fixed size, and the functions of C's math.h.
//
// A kernel is defined by PL_KERNEL and takes one plain struct, which the host's code shares: what is launched
// can't differ from what is read. Blocks are one-dimensional and a multiple of 32 threads.
//
//   PL_KERNEL(kThreads, relu_f32, UnaryParams, p) { ... }
//
// PL_KERNEL_SHARED also says how many blocks a multiprocessor has room for: a bound on registers.

#if defined(__CUDACC__)

#define PL_DEVICE __device__ __forceinline__
#define PL_KERNEL(threads, name, Params, p) \
  extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Params p)
#define PL_KERNEL_SHARED(threads, blocks, name, Params, p) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Params p)

#elif !defined(PACELINE_EMULATED_DEVICE)
#error "kernels are compiled by nvcc, or for tests/support/fake_cuda"
#endif

#include <cstddef>
#include <cstdint>

namespace paceline::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffU;

// bfloat16: the upper half of a float. Rounded to nearest, ties to even; NaN stays NaN.
struct Bf16 {
  std::uint16_t bits;
};

PL_DEVICE float to_float(float x) {
  return x;
}
PL_DEVICE float to_float(Bf16 x) {
  return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16);
}

template <typename T>
PL_DEVICE T rounded(float x);
template <>
PL_DEVICE float rounded<float>(float x) {
  return x;
}
template <>
PL_DEVICE Bf16 rounded<Bf16>(float x) {
#if defined(__CUDA_ARCH__)
  Bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#else
  const std::uint32_t u = __float_as_uint(x);
  if ((u & 0x7fffffffU) > 0x7f800000U) return {static_cast<std::uint16_t>(u >> 16 | 0x40U)};
  return {static_cast<std::uint16_t>((u + 0x7fffU + (u >> 16 & 1U)) >> 16)};
#endif
}

// 2^x to 2 units in the last place; 0 where it is no normal number.
PL_DEVICE float quick_exp2(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return exp2f(x);
#endif
}

// e^x by that: to 2 + 1.2 |x| units in the last place. For sums whose large terms are near e^0. (__expf()
// scales what is no normal number, which is three instructions more.)
PL_DEVICE float quick_exp(float x) {
#if defined(__CUDA_ARCH__)
  return quick_exp2(x * 1.4426950408889634F);
#else
  return expf(x);
#endif
}

// 1 / x to 1 unit in the last place; 0 where that is no normal number.
PL_DEVICE float quick_inverse(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1 / x;
#endif
}

// As many elements as one access of 16 bytes moves.
template <typename T>
inline constexpr int kWide = 16 / static_cast<int>(sizeof(T));

template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Packed {
  T at[kWidth];
};

// One access for each 16 bytes. REQUIRES: p is aligned to them, or to kWidth elements where those are fewer
// bytes.
template <int kWidth, typename T>
PL_DEVICE void load(const T* p, float (&x)[kWidth]) {
  const Packed<T, kWidth> packed = *reinterpret_cast<const Packed<T, kWidth>*>(p);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) x[i] = to_float(packed.at[i]);
}
template <int kWidth, typename T>
PL_DEVICE void store(T* p, const float (&x)[kWidth]) {
  Packed<T, kWidth> packed;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) packed.at[i] = rounded<T>(x[i]);
  *reinterpret_cast<Packed<T, kWidth>*>(p) = packed;
}

// The number of this thread among all of the launch, and how many they are (blocks in x alone).
PL_DEVICE std::size_t thread_of_grid() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
PL_DEVICE std::size_t threads_of_grid() {
  return static_cast<std::size_t>(gridDim.x) * blockDim.x;
}

}  // namespace paceline::cuda
