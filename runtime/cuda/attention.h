#pragma once

// Causal self-attention on the GPU, in fp32 or bf16: y = softmax(scale q k^T) v for each head, position t
// seeing positions <= t; sums and softmax in fp32 (kernels/attention_params.h). The scores are never in
// memory: the backward pass makes them again from the log of their sums (Dao et al. 2022, FlashAttention).
//
// In bf16, heads of up to 128 elements in eights are computed on tensor cores (kernels/flash_attention.cu),
// and on compute capability 9.0 those of up to 64 by groups of warps (kernels/warp_group.h): shares and
// slopes are rounded to bf16 before they are summed up. Everything else, fp32, odd sizes and larger heads, is
// plain arithmetic (kernels/attention.cu) and slow, with heads above kMostHeldHeadSize slower still: every
// 256 elements of a head make its scores again. The results of one pass are the same kind of thing in both.
//
// Addresses are of the GPU and 16-byte aligned; work is added to the stream and returns at once. The same
// bits from run to run. A NaN in a row reaches what that row's later positions give, and on tensor cores some
// earlier ones of the same head, up to 127 before it; never another row.
// Thread-safe but for the stream.

#include <array>
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

  absl::Status forward(Stream& stream, DType type, const AttentionParams& params) const;
  absl::Status backward(Stream& stream, DType type, const AttentionBackwardParams& params) const;
  // Of params.products.
  static std::size_t products(const AttentionShape& shape) {
    return std::size_t{shape.rows} * shape.heads * shape.time;
  }

 private:
  // For heads of up to 64 elements, of up to kMostHeldHeadSize, or of any.
  struct Plain {
    KernelPair<AttentionParams> forward;
    KernelPair<AttentionBackwardParams> queries, keys;
  };
  // For one of kFlash64, kHopper64 and kFlash128.
  struct Flash {
    static absl::StatusOr<Flash> load(const Module& module, const FlashKernels& sizes, const char* forward,
                                      const char* queries, const char* keys);
    FlashKernels sizes;
    Kernel<AttentionParams> forward;
    Kernel<AttentionBackwardParams> queries, keys;
  };
  Attention(Module plain, Module flash, const std::array<Plain, 3>& kernels, const Flash& flash_64,
            const Flash& flash_128)
      : plain_module_(std::move(plain)),
        flash_module_(std::move(flash)),
        plain_(kernels),
        flash_64_(flash_64),
        flash_128_(flash_128) {}
  // Null: it is for the plain kernels.
  const Flash* flash_for(DType type, const AttentionShape& shape) const;
  const Plain& plain_for(const AttentionShape& shape) const;

  Module plain_module_, flash_module_;
  std::array<Plain, 3> plain_;
  Flash flash_64_, flash_128_;
};

}  // namespace paceline::cuda
