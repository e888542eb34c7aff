// Causal self-attention, also with a key/value cache.

#include "runtime/cuda/attention.h"

#include <cmath>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/cached_attention.h"
#include "runtime/tensor/gpu/operators.h"

namespace paceline::tensor::gpu {

namespace {

using cuda::Stream;

cuda::AttentionShape attention_shape(const Dims& qkv, std::int64_t heads) {
  const auto u32 = [](std::int64_t n) { return static_cast<std::uint32_t>(n); };
  return {
      .rows = u32(qkv[0]), .time = u32(qkv[1]), .heads = u32(heads), .head_size = u32(qkv[2] / 3 / heads)};
}

float scale_of(const cuda::AttentionShape& shape) {
  return 1 / std::sqrt(static_cast<float>(shape.head_size));
}

// qkv -> y, statistics
absl::StatusOr<Lowered> attention_forward(GpuLowering& lowering, const Operation& operation) {
  const cuda::Attention& kernels = lowering.kernels().attention;
  const DType type = lowering.type();
  const cuda::AttentionShape shape =
      attention_shape(lowering.tensor(operation.inputs[0]).dims, operation.attributes.heads);
  lowering.set_statistics(operation.outputs[1]);
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.forward(stream, type,
                           {.qkv = a.inputs[0],
                            .y = a.outputs[0],
                            .statistics = out<float>(a, 1),
                            .shape = shape,
                            .scale = scale_of(shape)});
  };
  return Lowered{{}, body, {type}, {type}};
}

// g, qkv, statistics, y -> dqkv
absl::StatusOr<Lowered> attention_backward(const GpuLowering& lowering, const Operation& operation) {
  const cuda::Attention& kernels = lowering.kernels().attention;
  const DType type = lowering.type();
  const cuda::AttentionShape shape =
      attention_shape(lowering.tensor(operation.inputs[1]).dims, operation.attributes.heads);
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.backward(stream, type,
                            {.qkv = a.inputs[1],
                             .y = a.inputs[3],
                             .dy = a.inputs[0],
                             .statistics = in<float>(a, 2),
                             .products = static_cast<float*>(a.scratch),
                             .dqkv = a.outputs[0],
                             .shape = shape,
                             .scale = scale_of(shape)});
  };
  return Lowered{
      {cuda::Attention::products(shape) * sizeof(float)}, body, {type, type, DType::kF32, type}, {type}};
}

// qkv -> cache
Lowered keep_keys_values(const GpuLowering& lowering, const Operation& operation) {
  const cuda::CachedAttention& kernels = lowering.kernels().cached_attention;
  const DType type = lowering.type();
  const Dims& qkv = lowering.tensor(operation.inputs[0]).dims;
  const auto time = static_cast<std::uint32_t>(qkv[1]), width = static_cast<std::uint32_t>(qkv[2] / 3);
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.keep(stream, type,
                        {.qkv = a.inputs[0], .cache = a.outputs[0], .time = time, .width = width});
  };
  return {{}, body, {type}, {type}};
}

// qkv, labels -> y, cache
Lowered cached_attention(const GpuLowering& lowering, const Operation& operation) {
  const cuda::CachedAttention& kernels = lowering.kernels().cached_attention;
  const DType type = lowering.type();
  const cuda::AttentionShape shape =
      attention_shape(lowering.tensor(operation.inputs[0]).dims, operation.attributes.heads);
  const auto positions = static_cast<std::uint32_t>(operation.attributes.cached);
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.attend(stream, type,
                          {.qkv = a.inputs[0],
                           .cache = a.outputs[1],
                           .position = in<std::int32_t>(a, 1),
                           .y = a.outputs[0],
                           .scores = static_cast<float*>(a.scratch),
                           .positions = positions,
                           .heads = shape.heads,
                           .head_size = shape.head_size,
                           .scale = scale_of(shape)});
  };
  return {
      {cuda::CachedAttention::scores(shape.heads, positions) * sizeof(float)}, body, {type}, {type, type}};
}

}  // namespace

absl::StatusOr<Lowered> make_attention(GpuLowering& lowering, const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kCausalSelfAttention:
      return attention_forward(lowering, operation);
    case OperationKind::kCausalSelfAttentionBackward:
      return attention_backward(lowering, operation);
    case OperationKind::kKeepKeysValues:
      return keep_keys_values(lowering, operation);
    case OperationKind::kCachedSelfAttention:
      return cached_attention(lowering, operation);
    default:
      return absl::UnimplementedError("not an attention");
  }
}

}  // namespace paceline::tensor::gpu
