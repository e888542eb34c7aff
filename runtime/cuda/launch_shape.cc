#include "runtime/cuda/launch_shape.h"

#include <algorithm>

namespace paceline::cuda {

namespace {

// 8 blocks of 256 threads fill a multiprocessor; twice as many even out blocks that end at different times.
constexpr std::size_t kThreadsPerMultiprocessor = 4096;

}  // namespace

LaunchShape strided_shape(std::size_t pieces, std::uint32_t threads, int multiprocessors) {
  const std::size_t wanted = (pieces + threads - 1) / threads;
  const std::size_t most =
      static_cast<std::size_t>(std::max(multiprocessors, 1)) * kThreadsPerMultiprocessor / threads;
  return {.columns = static_cast<std::uint32_t>(std::clamp<std::size_t>(wanted, 1, most)),
          .threads = threads};
}

}  // namespace paceline::cuda
