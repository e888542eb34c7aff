#include "runtime/data/batch_slot.h"

#include "base/check.h"

namespace paceline::data {

std::int64_t batch_bytes(const SampleShape& shape, std::int64_t rows) {
  const std::int64_t label_bytes = shape.labels * static_cast<std::int64_t>(sizeof(std::int32_t));
  return rows * (shape.elements() * static_cast<std::int64_t>(sizeof(float)) + label_bytes);
}

BatchSlot::BatchSlot(const SampleShape& shape, std::int64_t max_rows) : shape_(shape), max_rows_(max_rows) {
  const auto rows = static_cast<std::size_t>(max_rows);
  const std::size_t elements = rows * static_cast<std::size_t>(shape.elements());
  indices_.reserve(rows);
  if (shape.kind == InputKind::kFloats) {
    inputs_.resize(elements);
  } else {
    tokens_.resize(elements);
  }
  labels_.resize(rows * static_cast<std::size_t>(shape.labels));
}

void BatchSlot::prepare(const Dataset& dataset, const BatchPlan& plan, std::int64_t step) {
  step_ = step;
  const std::uint64_t augmentation_seed = plan(step, indices_);
  const std::size_t rows = indices_.size();
  PL_CHECK(rows <= static_cast<std::size_t>(max_rows_), "no step has more rows than max_rows");
  const std::size_t elements = rows * static_cast<std::size_t>(shape_.elements());
  const bool floats = shape_.kind == InputKind::kFloats;
  BatchView view;
  view.inputs = std::span(inputs_).first(floats ? elements : 0);
  view.tokens = std::span(tokens_).first(floats ? 0 : elements);
  view.labels = std::span(labels_).first(rows * static_cast<std::size_t>(shape_.labels));
  status_ = rows == 0 ? absl::OkStatus() : dataset.fetch(indices_, augmentation_seed, view);
}

Batch BatchSlot::batch() const {
  const std::size_t rows = indices_.size();
  const std::size_t elements = rows * static_cast<std::size_t>(shape_.elements());
  Batch batch;
  batch.step = step_;
  batch.indices = indices_;
  if (shape_.kind == InputKind::kFloats) {
    batch.inputs = std::span(inputs_).first(elements);
  } else {
    batch.tokens = std::span(tokens_).first(elements);
  }
  batch.labels = std::span(labels_).first(rows * static_cast<std::size_t>(shape_.labels));
  return batch;
}

}  // namespace paceline::data
