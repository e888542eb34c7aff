#pragma once

// What the kernels of attention.cu take. With width = heads * head_size, a row of qkv holds the queries of
// all heads, then the keys, then the values.

#include <cstdint>

namespace paceline::cuda {

inline constexpr int kAttentionWarps = 4;  // of a block: a query, or a key, for each
inline constexpr std::uint32_t kMostHeadSize = 256;

struct AttentionShape {
  std::uint32_t rows = 0;  // samples
  std::uint32_t time = 0;
  std::uint32_t heads = 0;
  std::uint32_t head_size = 0;
};

struct AttentionParams {
  const void* qkv;    // [rows * time, 3 * width]
  void* y;            // [rows * time, width]
  float* statistics;  // [rows, heads, time, 2]: log of the sum of e^score; 0
  AttentionShape shape;
  float scale;  // of the scores
};

// In this order: queries, then keys.
struct AttentionBackwardParams {
  const void* qkv;
  const void* y;
  const void* dy;
  const float* statistics;
  float* products;  // [rows, heads, time]: y dy of each query, from the queries' kernel to the keys'
  void* dqkv;
  AttentionShape shape;
  float scale;
};

}  // namespace paceline::cuda
