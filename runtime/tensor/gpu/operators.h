#pragma once

// The makers of the GPU's operators, by family. UNIMPLEMENTED: a shape that its kernels do not take.

#include "absl/status/statusor.h"
#include "runtime/tensor/gpu/gpu_lowering.h"

namespace paceline::tensor::gpu {

absl::StatusOr<Lowered> make_linear(GpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_conv(GpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_pool(GpuLowering& lowering, const Operation& operation);
// Activations and their gradients, add, multiply, scale, reshape, sum over the rows.
absl::StatusOr<Lowered> make_pointwise(GpuLowering& lowering, const Operation& operation);
// Embedding, layer norm.
absl::StatusOr<Lowered> make_sequence(GpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_attention(GpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_loss(GpuLowering& lowering, const Operation& operation);

}  // namespace paceline::tensor::gpu
