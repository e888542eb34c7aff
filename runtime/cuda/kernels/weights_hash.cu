// The sum that base/vector_hash.h has, a warp for each of its blocks: lane l takes the words that its lane l
// takes, so that a warp reads 256 bytes side by side. Sums of integers do not depend on their order.

#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"
#include "runtime/cuda/kernels/weights_hash_params.h"

#include "base/vector_hash.h"

namespace paceline::cuda {

PL_KERNEL(kHashThreads, weights_hash, WeightsHashParams, p) {
  __shared__ std::uint64_t partials[kMostWarps];
  static_assert(block_hash::kLanes == kWarp);
  const std::size_t warps = static_cast<std::size_t>(gridDim.x) * warps_of_block();
  const std::size_t blocks = (p.n + block_hash::kFloats - 1) / block_hash::kFloats;
  const unsigned lane = lane_of_warp();
  std::uint64_t total = 0;
  for (std::size_t b = static_cast<std::size_t>(blockIdx.x) * warps_of_block() + warp_of_block(); b < blocks;
       b += warps) {
    std::uint64_t state = block_hash::begin(lane);
    std::size_t at = b * block_hash::kFloats + lane * std::size_t{2};
#pragma unroll 8
    for (int i = 0; i < block_hash::kRounds; ++i, at += block_hash::kLanes * std::size_t{2}) {
      std::uint64_t low = 0, high = 0;
      if (at + 1 < p.n) {
        const Packed<float, 2> pair = *reinterpret_cast<const Packed<float, 2>*>(p.weights + at);
        low = __float_as_uint(pair.at[0]);
        high = __float_as_uint(pair.at[1]);
      } else if (at < p.n) {
        low = __float_as_uint(p.weights[at]);
      }
      state = block_hash::turn(state, low | high << 32U);
    }
    total += block_hash::lane(state, lane, b);
  }
  total = block_sum(total, partials);
  if (threadIdx.x == 0) p.partials[blockIdx.x] = total;
}

}  // namespace paceline::cuda
