#pragma once

// The makers of the CPU's operators, by family. Each sets the layouts of the outputs that it makes. Errors:
// UNIMPLEMENTED from oneDNN.

#include "absl/status/statusor.h"
#include "runtime/tensor/cpu/cpu_lowering.h"

namespace paceline::tensor::cpu {

absl::StatusOr<Lowered> make_linear(CpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_linear_backward_data(CpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_linear_backward_weights(CpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_conv(CpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_conv_backward_data(CpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_conv_backward_weights(CpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_pool(CpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_pool_backward(CpuLowering& lowering, const Operation& operation);
// Activations and their gradients, add, multiply, scale, reshape, sum over the rows.
absl::StatusOr<Lowered> make_pointwise(CpuLowering& lowering, const Operation& operation);
absl::StatusOr<Lowered> make_loss(CpuLowering& lowering, const Operation& operation);
// Embedding, layer norm, attention.
absl::StatusOr<Lowered> make_sequence(CpuLowering& lowering, const Operation& operation);

// Every input row-major.
std::vector<Wanted> want_plain(const CpuLowering& lowering, const Operation& operation);

}  // namespace paceline::tensor::cpu
