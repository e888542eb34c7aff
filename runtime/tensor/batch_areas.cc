#include "runtime/tensor/batch_areas.h"

namespace paceline::tensor {

namespace {

const Node& loss_of(const GraphBuilder& graph) {
  return graph.nodes()[static_cast<std::size_t>(graph.loss().id)];
}

std::int64_t labels_per_sample(const GraphBuilder& graph) {
  const Node& loss = loss_of(graph);
  const Dims& dims = graph.dims(loss.inputs[0]);
  return loss.kind == OpKind::kSoftmaxCrossEntropy && dims.size() == 2 ? dims[0] : 1;
}

std::int64_t scores_per_sample(const GraphBuilder& graph) {
  const Node& loss = loss_of(graph);
  if (loss.kind == OpKind::kScores) return element_count(graph.dims(loss.inputs[0]));
  return loss.kind == OpKind::kSigmoidCrossEntropy ? 1 : 0;
}

}  // namespace

BatchAreas::BatchAreas(const GraphBuilder& graph, std::int64_t max_rows, bool training)
    : max_rows_(max_rows) {
  std::int64_t inputs = 0, tokens = 0, offsets = 0;
  bool trained = false;
  for (const Node& node : graph.nodes()) {
    if (node.kind == OpKind::kInput) inputs = element_count(node.dims);
    if (node.kind == OpKind::kInput) trained = node.attributes.trained;
    if (node.kind == OpKind::kTokens) tokens = node.dims[0];
    if (node.kind == OpKind::kOffset) offsets = 1;
  }
  const std::array<std::int64_t, kBatchParts> per_row = {inputs,
                                                         tokens,
                                                         labels_per_sample(graph),
                                                         offsets,
                                                         training && trained ? inputs : 0,
                                                         training ? offsets : 0,
                                                         scores_per_sample(graph)};
  for (std::size_t i = 0; i < kBatchParts; ++i) {
    per_row_[i] = static_cast<std::size_t>(per_row[i]);
    begins_[i] = bytes_;
    bytes_ += (per_row_[i] * static_cast<std::size_t>(max_rows) * 4 + 63) / 64 * 64;
  }
}

BatchMemory BatchAreas::view(std::byte* block) const {
  const auto floats = [&](BatchPart part) {
    return std::span(reinterpret_cast<float*>(block + begin(part)), elements(part, max_rows_));
  };
  const auto integers = [&](BatchPart part) {
    return std::span(reinterpret_cast<std::int32_t*>(block + begin(part)), elements(part, max_rows_));
  };
  return {floats(BatchPart::kInputs),         integers(BatchPart::kTokens),
          integers(BatchPart::kLabels),       floats(BatchPart::kOffsets),
          floats(BatchPart::kInputGradients), floats(BatchPart::kOffsetGradients),
          floats(BatchPart::kScores)};
}

ExternalMemory BatchAreas::addresses(std::byte* block) const {
  const auto floats = [&](BatchPart part) { return reinterpret_cast<float*>(block + begin(part)); };
  const auto integers = [&](BatchPart part) { return reinterpret_cast<std::int32_t*>(block + begin(part)); };
  ExternalMemory memory;
  memory.inputs = floats(BatchPart::kInputs);
  memory.tokens = integers(BatchPart::kTokens);
  memory.labels = integers(BatchPart::kLabels);
  memory.offsets = floats(BatchPart::kOffsets);
  memory.input_gradients = floats(BatchPart::kInputGradients);
  memory.offset_gradients = floats(BatchPart::kOffsetGradients);
  memory.scores = floats(BatchPart::kScores);
  return memory;
}

}  // namespace paceline::tensor
