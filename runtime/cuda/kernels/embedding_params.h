#pragma once

// What the kernels of embedding.cu take.

#include <cstdint>

namespace paceline::cuda {

inline constexpr int kEmbeddingThreads = 256;
// A token's rows beyond so many are summed in pieces, side by side.
inline constexpr std::uint32_t kMostPieceRows = 64;

// y[r] = table[tokens[r]] + positions[r % time], all of the kernel's type; a token that the table lacks gives
// NaN. A width of whole 16 bytes, or the kernels whose names end in _any.
struct EmbeddingParams {
  const std::int32_t* tokens;  // [rows]
  const void* table;           // [vocabulary, width]
  const void* positions;       // [time, width]; null: none
  void* y;                     // [rows, width]
  std::uint32_t rows;
  std::uint32_t time;
  std::uint32_t width;
  std::uint32_t vocabulary;
};

// Rows of one token, that one block adds up: those of order[begin, end), kMostPieceRows at most.
struct EmbeddingPiece {
  std::uint32_t token = 0;
  std::uint32_t begin = 0, end = 0;
  std::int32_t slot = -1;  // of the partial sums; -1: they are all of the token, and go to its gradient

  bool operator==(const EmbeddingPiece&) const = default;
};
// The slots that make a token's gradient, in this order.
struct EmbeddingJoin {
  std::uint32_t token = 0;
  std::uint32_t first = 0, end = 0;

  bool operator==(const EmbeddingJoin&) const = default;
};

// How many there are of this batch. The kernels read it on the GPU, so that a launch is the same for all
// batches of a size.
struct EmbeddingCounts {
  std::uint32_t pieces = 0, joins = 0;

  bool operator==(const EmbeddingCounts&) const = default;
};

// Blocks in strides over the pieces.
struct EmbeddingPiecesParams {
  const EmbeddingCounts* counts;
  const EmbeddingPiece* pieces;
  const std::uint32_t* order;
  const void* dy;   // [rows, width]
  float* gradient;  // [vocabulary, width], added to
  float* partials;  // [slots, width]
  std::uint32_t width;
};

// Blocks in strides over the joins.
struct EmbeddingJoinParams {
  const EmbeddingCounts* counts;
  const EmbeddingJoin* joins;
  const float* partials;
  float* gradient;
  std::uint32_t width;
};

}  // namespace paceline::cuda
