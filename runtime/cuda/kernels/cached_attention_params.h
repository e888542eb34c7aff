#pragma once

// Parameters of the kernels of cached_attention.cu. With width = heads * head_size, a row of qkv holds the
// queries of all heads, then the keys, then the values; a row of the cache the keys, then the values.

#include <cstddef>
#include <cstdint>

namespace paceline::cuda {

inline constexpr int kCachedAttentionWarps = 16;  // of a block, which has a head
inline constexpr int kKeepThreads = 256;

struct KeepKeysValuesParams {
  const void* qkv;  // [time, 3 * width]
  void* cache;      // [time or more, 2 * width]
  std::uint32_t time;
  std::uint32_t width;
};

struct CachedAttentionParams {
  const void* qkv;               // [3 * width]
  void* cache;                   // [positions, 2 * width]
  const std::int32_t* position;  // of qkv, in [0, positions)
  void* y;                       // [width]
  float* scores;                 // [heads, positions]: scratch memory
  std::uint32_t positions;
  std::uint32_t heads;
  std::uint32_t head_size;
  float scale;  // of the scores; above 0
};

}  // namespace paceline::cuda
