#pragma once

// Embeddings on the GPU: rows of a table by token, with the positions' rows, in fp32 or bf16, and their
// gradients in fp32 without atomics (kernels/embedding_params.h, embedding_plan.h).
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once. The same
// bits from run to run, on whatever GPU. Thread-safe but for the stream.

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/embedding_plan.h"
#include "runtime/cuda/kernel_pair.h"

namespace paceline::cuda {

class Embedding {
 public:
  static absl::StatusOr<Embedding> load(std::shared_ptr<const Context> context);

  absl::Status forward(Stream& stream, DType type, const EmbeddingParams& params) const;

  // Adds the rows of dy to their tokens' gradients, as a plan says whose parts lie on the GPU: params has its
  // counts, pieces, order, and partials for its slots. What is launched depends on the most that there may be
  // of both, and not on the plan.
  absl::Status backward(Stream& stream, DType type, const EmbeddingPiecesParams& params,
                        const EmbeddingJoin* joins, const EmbeddingCounts& most) const;

 private:
  struct Kernels {
    KernelPair<EmbeddingParams> forward, forward_any;
    KernelPair<EmbeddingPiecesParams> pieces, pieces_any;
    Kernel<EmbeddingJoinParams> join;
  };
  Embedding(Module module, const Kernels& kernels) : module_(std::move(module)), kernels_(kernels) {}

  Module module_;
  Kernels kernels_;
};

}  // namespace paceline::cuda
