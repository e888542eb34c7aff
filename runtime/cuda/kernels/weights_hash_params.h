#pragma once

// What the kernel of weights_hash.cu takes.

#include <cstddef>
#include <cstdint>

namespace paceline::cuda {

inline constexpr int kHashThreads = 256;

// One partial sum for each block of threads, over whole and begun blocks of the hash.
struct WeightsHashParams {
  const float* weights;
  std::uint64_t* partials;
  std::size_t n;
};

}  // namespace paceline::cuda
