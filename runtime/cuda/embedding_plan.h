#pragma once

// In which order the gradient of an embedding's table is added up: a function of the batch's tokens alone,
// made on the host while the GPU works, and copied there with the batch.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/cuda/kernels/embedding_params.h"

namespace paceline::cuda {

struct EmbeddingPlan {
  std::vector<std::uint32_t> order;    // the rows, by token, those of a token ascending
  std::vector<EmbeddingPiece> pieces;  // by token
  std::vector<EmbeddingJoin> joins;    // of tokens with several pieces
  std::uint32_t slots = 0;             // of partial sums
  std::vector<std::uint32_t> begins;   // working memory

  EmbeddingCounts counts() const {
    return {static_cast<std::uint32_t>(pieces.size()), static_cast<std::uint32_t>(joins.size())};
  }
};
// What a batch of so many rows makes at most.
constexpr std::uint32_t most_slots(std::uint32_t rows) {
  return rows / kMostPieceRows * 2;
}
constexpr EmbeddingCounts most_counts(std::uint32_t rows, std::uint32_t vocabulary) {
  return {std::min(rows, std::min(rows, vocabulary) + most_slots(rows)), rows / (kMostPieceRows + 1)};
}

// Into `plan`, whose memory is used again. INVALID_ARGUMENT names the first row whose token is not in
// [0, vocabulary).
absl::Status plan_embedding(std::span<const std::int32_t> tokens, std::uint32_t vocabulary,
                            EmbeddingPlan& plan);

}  // namespace paceline::cuda
