#pragma once

// What the kernels of optimizer.cu take. All vectors are flat and fp32, 16-byte aligned.

#include <cstddef>
#include <cstdint>

namespace paceline::cuda {

inline constexpr int kSquaresThreads = 256;
inline constexpr int kUpdateThreads = 256;

struct SquaresParams {
  const float* x;
  double* partials;  // one for each block
  std::size_t n;
};

// What a step takes from the gradient's norm, without the host.
struct Clipping {
  double norm = 0;
  float factor = 1;          // of the gradient: clip_norm / norm where the norm is larger
  std::uint32_t finite = 1;  // 0: the norm is not, and no weight changes
};

// One block.
struct ClipParams {
  const double* partials;
  std::uint32_t parts;
  double clip_norm;
  Clipping* result;
};

// Neighbours that are updated alike, by one block: from a multiple of 4 on, or fewer than 4.
struct UpdateChunk {
  std::uint64_t begin = 0;
  std::uint32_t count = 0;
  std::uint32_t decay = 0;  // whether weight decay is for them

  bool operator==(const UpdateChunk&) const = default;
};

// What all updates have: a block for each chunk.
struct UpdateParams {
  const UpdateChunk* chunks;
  float* weights;
  const float* gradient;
  void* copy;                // bf16 weights; null: none
  const Clipping* clipping;  // null: none
};

// SGD and Adagrad, likewise; weight_decay is of chunks that decay, added to the gradient.
struct SgdParams {
  UpdateParams update;
  float* momentum;  // null: there is none
  float learning_rate;
  float factor;  // of the momentum
  float weight_decay;
  bool nesterov;
};
struct AdagradParams {
  UpdateParams update;
  float* sum;
  float learning_rate;
  float epsilon;
  float weight_decay;
};

// Adam and AdamW, as optimizer/optimizer.h has them, with the terms of tensor/cpu/kernels/kernels.h's
// AdamStep.
struct AdamParams {
  UpdateParams update;
  float* first;
  float* second;
  float step_size;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float root_correction;
  float epsilon;
  float weight_decay;  // of chunks that decay: added to the gradient
  float shrink;        // and multiplies the weights first
};

}  // namespace paceline::cuda
