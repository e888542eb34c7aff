#pragma once

// What ours and the peers' programs have in common, so that all measure alike: `PROGRAM ... SIZE SIZE ...`
// prints, from rank 0, one line per size: the bytes and then the nanoseconds of each all-reduce of that many
// bytes of fp32.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace measure {

inline std::vector<std::size_t> parse_sizes(int first, int argc, char** argv) {
  std::vector<std::size_t> sizes;
  for (int i = first; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  return sizes;
}

// Memory in whole pages.
inline float* pages(std::size_t bytes) {
  return static_cast<float*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
}

// About a gigabyte of each size, 3 to 2000 times.
inline int iterations(std::size_t bytes) {
  const std::size_t wanted = (std::size_t{1} << 30) / (bytes == 0 ? 1 : bytes);
  return static_cast<int>(wanted < 3 ? 3 : wanted > 2000 ? 2000 : wanted);
}

// all_reduce(data, elements) for each size, in memory from allocate(bytes); a tenth more before, to warm up.
template <typename Allocate, typename AllReduce, typename Barrier>
void run(const std::vector<std::size_t>& sizes, bool print, Allocate allocate, AllReduce all_reduce,
         Barrier barrier) {
  std::size_t largest = 0;
  for (std::size_t bytes : sizes) largest = bytes > largest ? bytes : largest;
  float* data = allocate(largest);
  for (std::size_t i = 0; i < largest / sizeof(float); ++i) data[i] = 0.0f;
  for (std::size_t bytes : sizes) {
    const int count = iterations(bytes);
    std::vector<long long> times;
    for (int i = -(1 + count / 10); i < count; ++i) {
      if (bytes >= (std::size_t{1} << 20)) barrier();
      const auto begin = std::chrono::steady_clock::now();
      all_reduce(data, bytes / sizeof(float));
      const auto end = std::chrono::steady_clock::now();
      if (i >= 0) times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
    }
    if (!print) continue;
    std::printf("%zu", bytes);
    for (long long t : times) std::printf(" %lld", t);
    std::printf("\n");
    std::fflush(stdout);
  }
}

}  // namespace measure
