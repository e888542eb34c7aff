// Operators of token models, but for attention.

#include <cstdint>
#include <memory>
#include <utility>

#include "base/status.h"
#include "runtime/cuda/buffer.h"
#include "runtime/tensor/gpu/operators.h"

namespace paceline::tensor::gpu {

namespace {

using cuda::Stream;

// tokens, table[, positions] -> y
Lowered embedding(const GpuLowering& lowering, const Operation& operation) {
  const cuda::Embedding& kernels = lowering.kernels().embedding;
  const DType type = lowering.type();
  const Dims& table = lowering.tensor(operation.inputs[1]).dims;
  const cuda::EmbeddingParams shape{
      .tokens = nullptr,
      .table = nullptr,
      .positions = nullptr,
      .y = nullptr,
      .rows = static_cast<std::uint32_t>(lowering.elements(operation.inputs[0])),
      .time = static_cast<std::uint32_t>(lowering.tensor(operation.inputs[0]).dims[1]),
      .width = static_cast<std::uint32_t>(table[1]),
      .vocabulary = static_cast<std::uint32_t>(table[0])};
  const bool adds = operation.kind == OperationKind::kEmbeddingAdd;
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    cuda::EmbeddingParams params = shape;
    params.tokens = in<std::int32_t>(a, 0);
    params.table = a.inputs[1];
    if (adds) params.positions = a.inputs[2];
    params.y = a.outputs[0];
    return kernels.forward(stream, type, params);
  };
  std::vector<DType> inputs = {lowering.type(operation.inputs[0]), type};
  if (adds) inputs.push_back(type);
  return {{}, body, std::move(inputs), {type}};
}

// x, labels -> y: of each sample the row of its positions that its label says.
Lowered at_position(const GpuLowering& lowering, const Operation& operation) {
  const cuda::Embedding& kernels = lowering.kernels().embedding;
  const DType type = lowering.type();
  const Dims dims = lowering.tensor(operation.inputs[0]).dims;
  const std::size_t row_bytes = static_cast<std::size_t>(dims[2]) * dtype_bytes(type),
                    sample_bytes = static_cast<std::size_t>(dims[1]) * row_bytes;
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) -> absl::Status {
    for (std::size_t r = 0; r < static_cast<std::size_t>(dims[0]); ++r) {
      PL_RETURN_IF_ERROR(kernels.forward(stream, type,
                                         {.tokens = in<std::int32_t>(a, 1) + r,
                                          .table = in<std::byte>(a, 0) + r * sample_bytes,
                                          .positions = nullptr,
                                          .y = out<std::byte>(a, 0) + r * row_bytes,
                                          .rows = 1,
                                          .time = 1,
                                          .width = static_cast<std::uint32_t>(dims[2]),
                                          .vocabulary = static_cast<std::uint32_t>(dims[1])}));
    }
    return absl::OkStatus();
  };
  return {{}, body, {type}, {type}};
}

// The plan of a batch, in pinned memory and in what the operator prepares: its parts behind each other, the
// one that is seldom as long as it may be last.
struct PlanAreas {
  PlanAreas(std::uint32_t rows, const cuda::EmbeddingCounts& most)
      : counts(0),
        joins(counts + padded(sizeof(cuda::EmbeddingCounts))),
        order(joins + padded(most.joins * sizeof(cuda::EmbeddingJoin))),
        pieces(order + padded(rows * sizeof(std::uint32_t))),
        end(pieces + padded(most.pieces * sizeof(cuda::EmbeddingPiece))) {}
  static std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

  std::size_t counts, joins, order, pieces, end;
};

// Behind the last byte.
template <typename T>
std::size_t place(std::span<const T> values, std::span<std::byte> memory, std::size_t offset) {
  const auto bytes = std::as_bytes(values);
  std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(offset));
  return offset + bytes.size();
}

// tokens, g -> dtable
absl::StatusOr<Lowered> embedding_backward(const GpuLowering& lowering, const Operation& operation) {
  const cuda::Embedding& kernels = lowering.kernels().embedding;
  const DType type = lowering.type();
  const Tensor& table = lowering.tensor(operation.outputs[0]);
  const bool adds = table.adds;
  const auto vocabulary = static_cast<std::uint32_t>(table.dims[0]),
             width = static_cast<std::uint32_t>(table.dims[1]),
             rows = static_cast<std::uint32_t>(lowering.elements(operation.inputs[0]));
  const std::size_t gradient_bytes = lowering.elements(operation.outputs[0]) * sizeof(float);
  const cuda::EmbeddingCounts most = cuda::most_counts(rows, vocabulary);
  const PlanAreas areas(rows, most);
  const std::size_t partials = cuda::most_slots(rows) * std::size_t{width} * sizeof(float);
  PL_ASSIGN_OR_RETURN(cuda::PinnedBuffer buffer, cuda::PinnedBuffer::create(lowering.context(), areas.end));
  auto pinned = std::make_shared<cuda::PinnedBuffer>(std::move(buffer));
  auto plan = std::make_shared<cuda::EmbeddingPlan>();
  const auto prepare = [=](const Addresses& a, const RunContext& context, Stream& stream) -> absl::Status {
    PL_RETURN_IF_ERROR(cuda::plan_embedding(context.tokens.first(rows), vocabulary, *plan));
    const std::span<std::byte> host = pinned->bytes();
    const cuda::EmbeddingCounts counts = plan->counts();
    place(std::span(&counts, 1), host, areas.counts);
    place(std::span(std::as_const(plan->joins)), host, areas.joins);
    place(std::span(std::as_const(plan->order)), host, areas.order);
    const std::size_t end = place(std::span(std::as_const(plan->pieces)), host, areas.pieces);
    return stream.to_device(a.prepared, host.first(end));
  };
  const auto body = [=, &kernels](const Addresses& a, const RunContext& context,
                                  Stream& stream) -> absl::Status {
    const auto* const device = static_cast<const std::byte*>(a.prepared);
    if (!adds && !context.accumulate) PL_RETURN_IF_ERROR(stream.clear(a.outputs[0], gradient_bytes));
    const cuda::EmbeddingPiecesParams params{
        .counts = reinterpret_cast<const cuda::EmbeddingCounts*>(device + areas.counts),
        .pieces = reinterpret_cast<const cuda::EmbeddingPiece*>(device + areas.pieces),
        .order = reinterpret_cast<const std::uint32_t*>(device + areas.order),
        .dy = a.inputs[1],
        .gradient = out<float>(a, 0),
        .partials = static_cast<float*>(a.scratch),
        .width = width};
    return kernels.backward(stream, type, params,
                            reinterpret_cast<const cuda::EmbeddingJoin*>(device + areas.joins), most);
  };
  Operator::Needs needs;
  needs.scratch_bytes = partials;
  needs.prepared_bytes = areas.end;
  return Lowered{needs, body, {lowering.type(operation.inputs[0]), type}, {}, prepare};
}

// x, gain, bias -> y, means, inverses; or a, b, gain, bias -> sum, y, means, inverses, the sum over b where
// that may be.
absl::StatusOr<Lowered> layer_norm(GpuLowering& lowering, const Operation& operation) {
  const cuda::LayerNorm& kernels = lowering.kernels().layer_norm;
  const DType type = lowering.type();
  const bool adds = operation.kind == OperationKind::kAddLayerNorm;
  const std::size_t more = adds ? 1 : 0;  // operands, and results, than a norm alone has
  const auto columns = static_cast<std::uint32_t>(lowering.elements(operation.inputs[1 + more]));
  const auto rows = static_cast<std::uint32_t>(lowering.elements(operation.inputs[0]) / columns);
  lowering.set_statistics(operation.outputs[1 + more]);
  lowering.set_statistics(operation.outputs[2 + more]);
  const float epsilon = operation.attributes.epsilon;
  const auto body = [=, &kernels](const Addresses& a, const RunContext&, Stream& stream) {
    return kernels.forward(stream, type,
                           {.x = a.inputs[0],
                            .residual = adds ? a.inputs[1] : nullptr,
                            .sum = adds ? a.outputs[0] : nullptr,
                            .gain = in<float>(a, 1 + more),
                            .bias = in<float>(a, 2 + more),
                            .y = a.outputs[more],
                            .means = out<float>(a, 1 + more),
                            .inverses = out<float>(a, 2 + more),
                            .epsilon = epsilon,
                            .rows = rows,
                            .columns = columns});
  };
  if (!adds) return Lowered{{}, body, {type}, {type}};
  return Lowered{{0, Operator::Sharing::kMay, 1, 0}, body, {type, type}, {type, type}};
}

// g, x, gain, means, inverses[, through] -> dx, dgain, dbias
Lowered layer_norm_backward(const GpuLowering& lowering, const Operation& operation) {
  const cuda::LayerNorm& kernels = lowering.kernels().layer_norm;
  const DType type = lowering.type();
  const auto columns = static_cast<std::uint32_t>(lowering.elements(operation.inputs[2]));
  const auto rows = static_cast<std::uint32_t>(lowering.elements(operation.inputs[0]) / columns);
  const bool through = operation.inputs.size() > 5;
  const bool gain_adds = lowering.tensor(operation.outputs[1]).adds;
  const bool bias_adds = lowering.tensor(operation.outputs[2]).adds;
  const auto body = [=, &kernels](const Addresses& a, const RunContext& context,
                                  Stream& stream) -> absl::Status {
    const bool gain_stays = gain_adds || context.accumulate, bias_stays = bias_adds || context.accumulate;
    // Both are added to, or both written: of two that differ, the one to be written begins at zero.
    if (gain_stays != bias_stays)
      PL_RETURN_IF_ERROR(stream.clear(a.outputs[gain_stays ? 2 : 1], columns * sizeof(float)));
    return kernels.backward(
        stream, type,
        {.x = a.inputs[1],
         .dy = a.inputs[0],
         .through = through ? a.inputs[5] : nullptr,
         .dx = a.outputs[0],
         .gain = in<float>(a, 2),
         .means = in<float>(a, 3),
         .inverses = in<float>(a, 4),
         .partials = static_cast<float*>(a.scratch),
         .rows = rows,
         .columns = columns},
        {.gain = out<float>(a, 1), .bias = out<float>(a, 2), .accumulate = gain_stays || bias_stays});
  };
  std::vector<DType> inputs = {type, type, DType::kF32, DType::kF32, DType::kF32};
  if (through) inputs.push_back(type);
  return {{cuda::LayerNorm::scratch_elements(rows, columns) * sizeof(float), Operator::Sharing::kMay, 0, 0},
          body,
          std::move(inputs),
          {type}};
}

}  // namespace

absl::StatusOr<Lowered> make_sequence(GpuLowering& lowering, const Operation& operation) {
  switch (operation.kind) {
    case OperationKind::kEmbedding:
    case OperationKind::kEmbeddingAdd:
      return embedding(lowering, operation);
    case OperationKind::kEmbeddingBackward:
      return embedding_backward(lowering, operation);
    case OperationKind::kLayerNorm:
    case OperationKind::kAddLayerNorm:
      return layer_norm(lowering, operation);
    case OperationKind::kLayerNormBackward:
      return layer_norm_backward(lowering, operation);
    case OperationKind::kAtPosition:
      return at_position(lowering, operation);
    default:
      return absl::UnimplementedError("not an operation of token models");
  }
}

}  // namespace paceline::tensor::gpu
