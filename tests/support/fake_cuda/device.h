#pragma once

// CUDA's names for kernels that the host's compiler builds (included before all else of such a source): what
// runtime/cuda/kernels/portable.h lists, and no more. The threads of a block are fibers of one thread of the
// host (block.h), so that barriers and shuffles mean what they mean on a GPU.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/support/fake_cuda/block.h"

#define PACELINE_EMULATED_DEVICE 1

#define PL_DEVICE inline
// One block runs at a time on a thread of the host: what all of its fibers see.
#define __shared__ static thread_local

#define PL_KERNEL(threads, name, Params, p)                                                           \
  extern "C" void name(const Params& p);                                                              \
  static const ::paceline::fake_cuda::Registration name##_registration{                               \
      {#name, sizeof(Params), threads, [](const void* q) { name(*static_cast<const Params*>(q)); }}}; \
  static_assert(std::is_trivially_copyable_v<Params>);                                                \
  extern "C" void name(const Params& p)

#define PL_KERNEL_SHARED(threads, blocks, name, Params, p) PL_KERNEL(threads, name, Params, p)

#define threadIdx (::paceline::fake_cuda::self().thread)
#define blockIdx (::paceline::fake_cuda::self().block)
#define blockDim (::paceline::fake_cuda::self().threads)
#define gridDim (::paceline::fake_cuda::self().blocks)
#define __syncthreads() ::paceline::fake_cuda::barrier(__FILE__, __LINE__)
#define __shfl_xor_sync(mask, value, lanes) \
  ::paceline::fake_cuda::shuffle_xor(mask, value, lanes, __FILE__, __LINE__)

#define __shfl_sync(mask, value, lane) \
  ::paceline::fake_cuda::shuffle_xor(  \
      mask, value, static_cast<int>(static_cast<unsigned>(lane) ^ threadIdx.x % 32U), __FILE__, __LINE__)

inline float __uint_as_float(std::uint32_t x) {
  return std::bit_cast<float>(x);
}
inline std::uint32_t __float_as_uint(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
inline float rsqrtf(float x) {
  return 1.0F / std::sqrt(x);
}

namespace paceline::fake_cuda {

template <typename T>
T shuffle_xor(unsigned mask, T value, int lanes, const char* file, int line) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, static_cast<unsigned>(lanes), file, line);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace paceline::fake_cuda

#include "tests/support/fake_cuda/tensor_core.h"
