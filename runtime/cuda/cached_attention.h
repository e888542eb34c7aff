#pragma once

// Attention with a cache of keys and values on the GPU, in fp32 or bf16, of one sample
// (kernels/cached_attention_params.h): keep() leaves there those of a pass over many positions; attend()
// those of one position p, and makes y = softmax(scale q k^T) v of each head over positions 0 to p, with sums
// and softmax in fp32. Heads are of any size. The position is read on the GPU: what was recorded serves every
// one. With a position that the cache lacks y is NaN, and the cache stays as it is.
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once. The same
// bits from run to run. Thread-safe but for the stream.

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/kernel_pair.h"
#include "runtime/cuda/kernels/cached_attention_params.h"

namespace paceline::cuda {

class CachedAttention {
 public:
  static absl::StatusOr<CachedAttention> load(std::shared_ptr<const Context> context);

  absl::Status keep(Stream& stream, DType type, const KeepKeysValuesParams& params) const;
  absl::Status attend(Stream& stream, DType type, const CachedAttentionParams& params) const;
  // The elements of params.scores.
  static std::size_t scores(std::uint32_t heads, std::uint32_t positions) {
    return std::size_t{heads} * positions;
  }

 private:
  CachedAttention(Module module, const KernelPair<KeepKeysValuesParams>& keep,
                  const KernelPair<CachedAttentionParams>& attend)
      : module_(std::move(module)), keep_(keep), attend_(attend) {}

  Module module_;
  KernelPair<KeepKeysValuesParams> keep_;
  KernelPair<CachedAttentionParams> attend_;
};

}  // namespace paceline::cuda
