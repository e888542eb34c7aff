// Operators of token models, over the loops of kernels/. All operands are row-major.

#include <algorithm>

#include "base/check.h"
#include "runtime/tensor/cpu/function_operator.h"
#include "runtime/tensor/cpu/kernels/kernels.h"
#include "runtime/tensor/cpu/operators.h"

namespace paceline::tensor::cpu {

namespace {

using Addresses = Operator::Addresses;

Lowered plain(CpuLowering& lowering, const Operation& operation, Operator::Needs needs,
              FunctionOperator::Body body) {
  for (const TensorId id : operation.outputs) {
    if (lowering.tensor(id).place == Place::kArena)
      lowering.set_layout(id, plain_layout(lowering.tensor(id).dims));
  }
  return {std::make_unique<FunctionOperator>(needs, std::move(body)), want_plain(lowering, operation)};
}

// The kernels add to parameters' gradients: a gradient that is to be written begins at zero.
void begin_gradient(float* gradient, std::size_t n, bool adds) {
  if (!adds) std::fill(gradient, gradient + n, 0.0F);
}

Lowered embedding(CpuLowering& lowering, const Operation& operation) {
  const Dims table = lowering.tensor(operation.inputs[1]).dims;
  const std::size_t rows = lowering.elements(operation.inputs[0]);
  const auto time = static_cast<std::size_t>(lowering.tensor(operation.inputs[0]).dims[1]);
  return plain(lowering, operation, {}, [=](const Addresses& a, const RunContext&) {
    const auto* tokens = static_cast<const std::int32_t*>(a.inputs[0]);
    for (std::size_t r = 0; r < rows; ++r)
      PL_CHECK(tokens[r] >= 0 && tokens[r] < table[0], "a token is in [0, vocabulary)");
    kernels().embed(tokens, in(a, 1), nullptr, out(a, 0), rows, time, static_cast<std::size_t>(table[1]));
  });
}

Lowered embedding_backward(CpuLowering& lowering, const Operation& operation) {
  const Tensor& table = lowering.tensor(operation.outputs[0]);
  const std::size_t n = lowering.elements(operation.outputs[0]);
  const auto width = static_cast<std::size_t>(table.dims[1]);
  const std::size_t rows = lowering.elements(operation.inputs[0]);
  const auto time = static_cast<std::size_t>(lowering.tensor(operation.inputs[0]).dims[1]);
  const bool adds = table.adds;
  return plain(lowering, operation, {}, [=](const Addresses& a, const RunContext& context) {
    begin_gradient(out(a, 0), n, adds || context.accumulate);
    kernels().embed_backward(static_cast<const std::int32_t*>(a.inputs[0]), in(a, 1), out(a, 0), nullptr,
                             rows, time, width);
  });
}

Lowered layer_norm(CpuLowering& lowering, const Operation& operation) {
  const std::size_t width = lowering.elements(operation.inputs[1]);
  const std::size_t rows = lowering.elements(operation.inputs[0]) / width;
  const float epsilon = operation.attributes.epsilon;
  return plain(lowering, operation, {}, [=](const Addresses& a, const RunContext&) {
    kernels().layer_norm(in(a, 0), nullptr, nullptr, in(a, 1), in(a, 2), out(a, 0), out(a, 1), out(a, 2),
                         epsilon, rows, width);
  });
}

// g, x, gain, means, inverses[, through] -> dx, dgain, dbias
Lowered layer_norm_backward(CpuLowering& lowering, const Operation& operation) {
  const std::size_t width = lowering.elements(operation.inputs[2]);
  const std::size_t rows = lowering.elements(operation.inputs[0]) / width;
  const bool through = operation.inputs.size() > 5;
  const bool gain_adds = lowering.tensor(operation.outputs[1]).adds;
  const bool bias_adds = lowering.tensor(operation.outputs[2]).adds;
  return plain(lowering, operation, {0, Operator::Sharing::kMay, 0, 0},
               [=](const Addresses& a, const RunContext& context) {
                 begin_gradient(out(a, 1), width, gain_adds || context.accumulate);
                 begin_gradient(out(a, 2), width, bias_adds || context.accumulate);
                 kernels().layer_norm_backward(in(a, 1), in(a, 2), in(a, 3), in(a, 4), in(a, 0),
                                               through ? in(a, 5) : nullptr, out(a, 0), out(a, 1), out(a, 2),
                                               rows, width);
               });
}

AttentionShape attention_shape(const CpuLowering& lowering, TensorId qkv, std::int64_t heads) {
  const Dims& dims = lowering.tensor(qkv).dims;
  AttentionShape shape;
  shape.batch = static_cast<std::size_t>(dims[0]);
  shape.time = static_cast<std::size_t>(dims[1]);
  shape.heads = static_cast<std::size_t>(heads);
  shape.head_size = static_cast<std::size_t>(dims[2] / 3 / heads);
  return shape;
}

Lowered attention(CpuLowering& lowering, const Operation& operation) {
  const AttentionShape shape = attention_shape(lowering, operation.inputs[0], operation.attributes.heads);
  return plain(lowering, operation, {attention_scratch(shape) * sizeof(float)},
               [=](const Addresses& a, const RunContext&) {
                 kernels().attention(shape, in(a, 0), out(a, 0), out(a, 1), static_cast<float*>(a.scratch));
               });
}

// g, qkv, statistics, y -> dqkv; y is not needed here
Lowered attention_backward(CpuLowering& lowering, const Operation& operation) {
  const AttentionShape shape = attention_shape(lowering, operation.inputs[1], operation.attributes.heads);
  return plain(lowering, operation, {attention_scratch(shape) * sizeof(float)},
               [=](const Addresses& a, const RunContext&) {
                 kernels().attention_backward(shape, in(a, 1), in(a, 2), in(a, 0), out(a, 0),
                                              static_cast<float*>(a.scratch));
               });
}

// qkv -> cache
Lowered keep_keys_values(CpuLowering& lowering, const Operation& operation) {
  const Dims dims = lowering.tensor(operation.inputs[0]).dims;
  const std::int64_t width = dims[2] / 3;
  return plain(lowering, operation, {}, [=](const Addresses& a, const RunContext&) {
    for (std::int64_t t = 0; t < dims[1]; ++t)
      std::copy_n(in(a, 0) + (3 * t + 1) * width, 2 * width, out(a, 0) + 2 * t * width);
  });
}

// qkv, labels -> y, cache
Lowered cached_attention(CpuLowering& lowering, const Operation& operation) {
  const AttentionShape shape = attention_shape(lowering, operation.inputs[0], operation.attributes.heads);
  const std::size_t width = shape.heads * shape.head_size;
  const std::int64_t positions = operation.attributes.cached;
  return plain(lowering, operation, {static_cast<std::size_t>(positions) * sizeof(float)},
               [=](const Addresses& a, const RunContext&) {
                 const std::int32_t position = *static_cast<const std::int32_t*>(a.inputs[1]);
                 PL_CHECK(position >= 0 && position < positions, "a label is a position of the cache");
                 const auto seen = static_cast<std::size_t>(position) + 1;
                 std::copy_n(in(a, 0) + width, 2 * width, out(a, 1) + (seen - 1) * 2 * width);
                 kernels().cached_attention(shape.heads, shape.head_size, seen, in(a, 0), out(a, 1),
                                            out(a, 0), static_cast<float*>(a.scratch));
               });
}

// x, labels -> y
Lowered at_position(CpuLowering& lowering, const Operation& operation) {
  const Dims dims = lowering.tensor(operation.inputs[0]).dims;
  return plain(lowering, operation, {}, [=](const Addresses& a, const RunContext&) {
    const auto* places = static_cast<const std::int32_t*>(a.inputs[1]);
    for (std::int64_t r = 0; r < dims[0]; ++r) {
      PL_CHECK(places[r] >= 0 && places[r] < dims[1], "a label is a position");
      std::copy_n(in(a, 0) + (r * dims[1] + places[r]) * dims[2], dims[2], out(a, 0) + r * dims[2]);
    }
  });
}

}  // namespace

absl::StatusOr<Lowered> make_sequence(CpuLowering& lowering, const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kEmbedding:
      return embedding(lowering, operation);
    case OperationKind::kEmbeddingBackward:
      return embedding_backward(lowering, operation);
    case OperationKind::kLayerNorm:
      return layer_norm(lowering, operation);
    case OperationKind::kLayerNormBackward:
      return layer_norm_backward(lowering, operation);
    case OperationKind::kCausalSelfAttention:
      return attention(lowering, operation);
    case OperationKind::kCausalSelfAttentionBackward:
      return attention_backward(lowering, operation);
    case OperationKind::kKeepKeysValues:
      return keep_keys_values(lowering, operation);
    case OperationKind::kCachedSelfAttention:
      return cached_attention(lowering, operation);
    case OperationKind::kAtPosition:
      return at_position(lowering, operation);
    default:
      return absl::UnimplementedError("not an operation of token models");
  }
}

}  // namespace paceline::tensor::cpu
