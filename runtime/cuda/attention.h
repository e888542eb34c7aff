#pragma once

// Causal self-attention on the GPU, in fp32 or bf16: y = softmax(scale q k^T) v for each head, position t
// seeing positions <= t; sums and softmax in fp32 (kernels/attention_params.h). The scores are never in
// memory: the backward pass makes them again from the log of their sums (Dao et al. 2022, FlashAttention).
//
// These kernels take every head size up to kMostHeadSize and use no tensor cores.
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once. The same
// bits from run to run, on whatever GPU. A NaN in a row reaches what that row's later positions give.
// Thread-safe but for the stream.

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/kernel_pair.h"
#include "runtime/cuda/kernels/attention_params.h"

namespace paceline::cuda {

class Attention {
 public:
  static absl::StatusOr<Attention> load(std::shared_ptr<const Context> context);

  // UNIMPLEMENTED: a head size above kMostHeadSize.
  absl::Status forward(Stream& stream, DType type, const AttentionParams& params) const;
  absl::Status backward(Stream& stream, DType type, const AttentionBackwardParams& params) const;
  // Of params.products.
  static std::size_t products(const AttentionShape& shape) {
    return std::size_t{shape.rows} * shape.heads * shape.time;
  }

 private:
  struct Kernels {
    KernelPair<AttentionParams> forward_64, forward_256;
    KernelPair<AttentionBackwardParams> queries_64, queries_256, keys_64, keys_256;
  };
  Attention(Module module, const Kernels& kernels) : module_(std::move(module)), kernels_(kernels) {}

  Module module_;
  Kernels kernels_;
};

}  // namespace paceline::cuda
