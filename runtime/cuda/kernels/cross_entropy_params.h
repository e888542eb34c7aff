#pragma once

// What the kernels of cross_entropy.cu take.

#include <cstdint>

namespace paceline::cuda {

inline constexpr int kCrossEntropyThreads = 1024;
inline constexpr int kLossSumThreads = 1024;

// A block for each row. Rows are `stride` elements apart, of which the first `classes` count.
struct CrossEntropyParams {
  void* logits;                // [rows, stride]; replaced by their gradient in the kernels of that name
  const std::int32_t* labels;  // [rows]
  float* losses;       // -log of the label's probability; NaN where the row has one, or the label is no
                       // class. Null: neither losses nor hits are wanted
  std::int32_t* hits;  // 1 where the first highest logit is the label's, never in a row with NaN
  float scale;         // of the gradient
  std::uint32_t rows;
  std::uint32_t classes;
  std::uint32_t stride;
};

// One block.
struct LossSumParams {
  const float* losses;
  const std::int32_t* hits;
  double* result;  // the sum of losses divided by rows_per_sample, hits, rows
  std::uint32_t rows;
  std::uint32_t rows_per_sample;
};

}  // namespace paceline::cuda
