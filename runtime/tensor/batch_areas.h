#pragma once

// Where the parts of a batch lie in one block of memory: what a graph takes and leaves there, for so many
// rows. Pure.

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/tensor/graph.h"
#include "runtime/tensor/program.h"

namespace paceline::tensor {

enum class BatchPart : std::uint8_t {  // in this order
  kInputs,
  kTokens,
  kLabels,
  kOffsets,
  kInputGradients,
  kOffsetGradients,
  kScores,
};
inline constexpr std::size_t kBatchParts = 7;

// What a schedule reads and writes outside of its arena, by Place (schedule.h).
struct ExternalMemory {
  float* inputs = nullptr;
  std::int32_t* tokens = nullptr;
  std::int32_t* labels = nullptr;
  float* offsets = nullptr;
  float* input_gradients = nullptr;
  float* offset_gradients = nullptr;
  float* scores = nullptr;
  float* weights = nullptr;
  float* gradients = nullptr;
  double* result = nullptr;
  std::byte* cache = nullptr;
};

class BatchAreas {
 public:
  BatchAreas(const GraphBuilder& graph, std::int64_t max_rows, bool training);

  std::size_t bytes() const { return bytes_; }
  // Of what the graph takes, which comes first.
  std::size_t input_bytes() const { return begin(BatchPart::kInputGradients); }
  // Offset of a part, in bytes; a multiple of 64.
  std::size_t begin(BatchPart part) const { return begins_[index(part)]; }
  // Elements, each of 4 bytes; 0: the graph has no such part.
  std::size_t elements(BatchPart part, std::int64_t rows) const {
    return per_row_[index(part)] * static_cast<std::size_t>(rows);
  }
  BatchMemory view(std::byte* block) const;
  // The parts alone.
  ExternalMemory addresses(std::byte* block) const;

 private:
  static std::size_t index(BatchPart part) { return static_cast<std::size_t>(part); }

  std::int64_t max_rows_;
  std::array<std::size_t, kBatchParts> per_row_{};
  std::array<std::size_t, kBatchParts> begins_{};
  std::size_t bytes_ = 0;
};

}  // namespace paceline::tensor
