#include "runtime/model/wide_and_deep.h"

#include <algorithm>

#include "base/status.h"
#include "runtime/model/layers.h"

namespace paceline::model {

namespace {

using tensor::Init;
using tensor::Value;

constexpr float kEmbeddingBound = 0.05F;

std::string cross_text(const v1::CrossSpec& cross) {
  std::string text;
  for (const std::int64_t field : cross.fields()) text += str_cat(text.empty() ? "" : ", ", field);
  return "[" + text + "]";
}

absl::Status check_cross(const v1::CrossSpec& cross) {
  if (cross.fields_size() < 2 || cross.fields_size() > kMaxCrossFields) {
    return absl::InvalidArgumentError(str_cat("wide-and-deep: the cross ", cross_text(cross), " has ",
                                              cross.fields_size(), " fields; allowed: 2 to ",
                                              kMaxCrossFields));
  }
  std::int64_t before = -1;
  for (const std::int64_t field : cross.fields()) {
    if (field <= before) {
      return absl::InvalidArgumentError(str_cat("wide-and-deep: the cross ", cross_text(cross),
                                                " must name fields from 0, each once, in ascending order"));
    }
    before = field;
  }
  return absl::OkStatus();
}

}  // namespace

SampleNeeds needs_of(const WideAndDeepShape& shape, std::int64_t samples) {
  const auto crosses = samples * static_cast<std::int64_t>(shape.crosses.size());
  std::int64_t values = shape.vocabularies.empty() ? samples * shape.fields : 0;
  for (const std::int64_t different : shape.vocabularies) values += std::min(different, samples);
  return {.rows = {values + crosses, values},
          .floats = values + crosses + values * shape.embedding,
          .lookups = samples * shape.fields + crosses};
}

absl::StatusOr<WideAndDeepShape> WideAndDeep::shape(const data::SampleShape& sample) const {
  if (sample.kind != data::InputKind::kTokens || sample.dims.size() != 1 || sample.labels != 1) {
    return absl::InvalidArgumentError(
        str_cat("wide-and-deep needs samples of categorical fields with one label; the data has ",
                sample.kind == data::InputKind::kTokens ? "tokens" : "numbers", " of shape ",
                tensor::dims_text(sample.dims), " with ", sample.labels, " labels (use format: clicks)"));
  }
  if (sample.classes > 2) {
    return absl::InvalidArgumentError(
        str_cat("wide-and-deep needs labels that are 0 or 1; the data's go to ", sample.classes - 1));
  }
  WideAndDeepShape shape{sample.dims[0], spec_.embedding(), {}, sample.vocabularies};
  for (const v1::CrossSpec& cross : spec_.crosses()) {
    shape.crosses.emplace_back(cross.fields().begin(), cross.fields().end());
    if (shape.crosses.back().back() >= shape.fields) {
      return absl::InvalidArgumentError(str_cat("wide-and-deep: the cross ", cross_text(cross),
                                                " names field ", shape.crosses.back().back(),
                                                "; the data's fields are 0 to ", shape.fields - 1));
    }
  }
  return shape;
}

std::vector<TableShape> WideAndDeep::tables() const {
  return {{"wide", 1, Init::constant(0)}, {"deep", spec_.embedding(), Init::uniform(kEmbeddingBound)}};
}

absl::Status WideAndDeep::build(tensor::GraphBuilder& graph, const data::SampleShape& sample) const {
  PL_ASSIGN_OR_RETURN(const WideAndDeepShape sizes, shape(sample));
  Value h = graph.trained_input({sizes.fields * sizes.embedding});
  for (int i = 0; i < spec_.hidden_size() && graph.status().ok(); ++i) {
    const std::int64_t in = graph.dims(h).back(), out = spec_.hidden(i);
    const Init init = spec_.activation() == v1::ACTIVATION_TANH ? Init::xavier(in, out) : Init::he(in);
    h = activate(graph, spec_.activation(), graph.dense(str_cat("fc", i + 1), h, out, init));
  }
  if (!graph.status().ok()) return graph.status();
  const Value deep = graph.dense("output", h, 1, Init::xavier(graph.dims(h).back(), 1));
  graph.sigmoid_cross_entropy(graph.add(deep, graph.offset()));
  return graph.status();
}

absl::StatusOr<std::unique_ptr<Model>> make_wide_and_deep(const v1::WideAndDeepSpec& spec) {
  if (spec.embedding() < 1 || spec.embedding() > kMaxEmbedding) {
    return absl::InvalidArgumentError(
        str_cat("wide-and-deep: embedding is ", spec.embedding(), "; allowed: 1 to ", kMaxEmbedding));
  }
  for (const std::int64_t width : spec.hidden()) {
    if (width < 1)
      return absl::InvalidArgumentError(str_cat("wide-and-deep: hidden width ", width, " is not positive"));
  }
  if (spec.crosses_size() > kMaxCrosses) {
    return absl::InvalidArgumentError(
        str_cat("wide-and-deep: ", spec.crosses_size(), " crosses; allowed: at most ", kMaxCrosses));
  }
  for (const v1::CrossSpec& cross : spec.crosses()) PL_RETURN_IF_ERROR(check_cross(cross));
  return std::make_unique<WideAndDeep>(spec);
}

}  // namespace paceline::model
