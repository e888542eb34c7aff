#pragma once

// Where tensors lie in one arena, so that those that are never needed at the same time share memory. Pure.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline::tensor {

// Memory that is needed from operation `first` to operation `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // multiples of kArenaAlignment, one for each lifetime
  std::size_t bytes = 0;             // of the arena
};

// What cuBLASLt wants of a workspace; a multiple of a cache line.
inline constexpr std::size_t kArenaAlignment = 256;

// Greedy by size (Pisarchyk, Lee 2020): the largest first, each into the smallest gap that holds it between
// those whose lives overlap its own. O(n^2) in the number of lifetimes.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

// One in so many bytes of a device's own memory is left to its driver, which takes memory later: for kernels
// when they are launched first, for graphs, for NCCL.
inline constexpr std::size_t kDriversPart = 32;
// For people: rounded up, as what is needed is, and down, as what is free.
inline std::size_t mebibytes(std::size_t bytes) {
  return (bytes + (std::size_t{1} << 20) - 1) >> 20;
}
inline std::size_t free_mebibytes(std::size_t bytes) {
  return bytes >> 20;
}

}  // namespace paceline::tensor
