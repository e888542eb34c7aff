#pragma once

// What the kernels of attention.cu and flash_attention.cu take. With width = heads * head_size, a row of qkv
// holds the queries of all heads, then the keys, then the values.

#include <cstddef>
#include <cstdint>

namespace paceline::cuda {

inline constexpr int kAttentionWarps = 4;  // of a block: a query, or a key, for each
inline constexpr std::uint32_t kMostHeldHeadSize =
    256;  // in shared memory; of a larger head, what a warp makes

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
  float scale;  // of the scores; above 0
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

// How flash_attention.cu cuts a head: a block has own() positions, warp_rows for each of its warps, and goes
// over those that they attend to (or are attended by) in steps of `step`, of which two are in its shared
// memory at a time.
struct FlashSizes {
  std::uint32_t head_size;  // up to this; shorter vectors are filled up with zeros
  std::uint32_t warp_rows;  // 16 or 32: of an operand that is in shared memory, 32 read half as much of it
  std::uint32_t step;
  std::uint32_t blocks = 1;  // of a multiprocessor: a bound on registers
  bool groups = false;       // four warps make a product together (warp_group.h), of 16 rows for each

  constexpr std::uint32_t own() const { return warp_rows * kAttentionWarps; }
  constexpr std::uint32_t bytes(std::uint32_t rows) const { return rows * head_size * 2; }
  // Of shared memory: own queries; keys and values.
  constexpr std::uint32_t forward_bytes() const { return bytes(own() + 4 * step); }
  // Own queries and their gradients, with two sums of each; keys and values.
  constexpr std::uint32_t queries_bytes() const { return bytes(2 * own() + 4 * step) + own() * 8; }
  // Own keys and values; queries and their gradients, with statistics and products.
  constexpr std::uint32_t keys_bytes() const { return bytes(2 * own() + 4 * step) + 2 * step * 12; }
};

// Which head a block has, and its turn there: turn 0 is the longest. Blocks of as many heads as the GPU's
// cache holds keys and values for come together; among them the longest first, so that none of these begins
// last.
struct FlashTurn {
  std::size_t row_head = 0;  // row * heads + head
  std::uint32_t turn = 0;
};
inline constexpr std::size_t kFlashCacheBytes = std::size_t{12} << 20;
constexpr FlashTurn flash_turn(const AttentionShape& s, std::uint32_t own, std::size_t block) {
  const std::size_t all = std::size_t{s.rows} * s.heads, turns = (s.time + own - 1) / own;
  const std::size_t fit = kFlashCacheBytes / (std::size_t{s.time} * s.head_size * 4) + 1;
  const std::size_t first = block / (fit * turns) * fit, at = block - first * turns;
  const std::size_t heads = all - first < fit ? all - first : fit;
  return {first + at % heads, static_cast<std::uint32_t>(at / heads)};
}

// Such that registers hold the sums (of sm_80 and sm_90, 224 to 255 are used, and at most 76 bytes spilled),
// and shared memory is what every GPU has.
struct FlashKernels {
  FlashSizes forward, queries, keys;
};
inline constexpr FlashKernels kFlash64{{64, 32, 64}, {64, 32, 64}, {64, 32, 32}};
inline constexpr FlashKernels kFlash128{{128, 32, 32}, {128, 32, 32}, {128, 16, 32}};
// Hopper GPUs (compute capability 9.0) have these, by groups of four warps: of the sizes that fit, those that
// took least time on an H200. The keys' kernel spills 16 bytes for a third block.
inline constexpr FlashKernels kHopper64{{64, 16, 64, 4, true}, {64, 16, 64, 4, true}, {64, 16, 64, 3, true}};

}  // namespace paceline::cuda
