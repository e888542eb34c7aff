#include "runtime/trainer/sparse_rows.h"

#include <algorithm>

#include "base/status.h"

namespace paceline::trainer {

namespace {

constexpr std::int64_t kMaxFloats = std::int64_t{1} << 30;  // of a batch's rows, if all differed

std::int64_t lookups_of(const model::WideAndDeepShape& shape) {
  return shape.fields + static_cast<std::int64_t>(shape.crosses.size());
}
std::int64_t floats_of(const model::WideAndDeepShape& shape) {
  return lookups_of(shape) + shape.fields * shape.embedding;
}

}  // namespace

std::int64_t max_samples_of_pull(const model::WideAndDeepShape& shape) {
  return std::min(static_cast<std::int64_t>(pserver::sparse::kMaxRowsPerCall) / lookups_of(shape),
                  static_cast<std::int64_t>(pserver::sparse::kMaxFloatsPerCall) / floats_of(shape));
}

absl::StatusOr<std::unique_ptr<SparseRows>> SparseRows::create(const model::WideAndDeepShape& shape,
                                                               std::int64_t max_samples) {
  const std::int64_t allowed = kMaxFloats / floats_of(shape);
  if (max_samples > allowed) {
    return absl::InvalidArgumentError(
        str_cat("a worker's part of a global batch is of ", max_samples,
                " samples; allowed, with this model: at most ", allowed,
                "; take more workers or a smaller spec.training.globalBatchSize"));
  }
  return std::unique_ptr<SparseRows>(new SparseRows(shape, max_samples));
}

absl::Status SparseRows::place_gradients(transport::Arena& arena) {
  for (std::size_t t = 0; t < model::kTables; ++t) {
    const std::size_t floats = batch_.max_floats(t);
    PL_ASSIGN_OR_RETURN(const std::span<std::byte> memory, arena.allocate(floats * sizeof(float)));
    batch_.place_gradients(t, {reinterpret_cast<float*>(memory.data()), floats});
  }
  return absl::OkStatus();
}

absl::Status SparseRows::pull(std::span<const std::int32_t> tokens, const Pull& pull) {
  batch_.look_up(tokens);
  PL_RETURN_IF_ERROR(check_size());
  batch_.clear_gradients();
  for (std::size_t t = 0; t < model::kTables; ++t) {
    pulls_[t] = {static_cast<int>(t), batch_.ids(t), batch_.rows(t)};
  }
  return pull(pulls_);
}

absl::Status SparseRows::check_size() {
  std::size_t floats = 0, rows = 0;
  for (std::size_t t = 0; t < model::kTables; ++t) {
    rows = std::max(rows, batch_.ids(t).size());
    floats += batch_.rows(t).size();
  }
  if (rows <= pserver::sparse::kMaxRowsPerCall && floats <= pserver::sparse::kMaxFloatsPerCall) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(str_cat(
      "the samples of one unit need ", rows, " rows of a table, and ", floats,
      " floats in all; allowed: ", pserver::sparse::kMaxRowsPerCall, " and ",
      pserver::sparse::kMaxFloatsPerCall, "; take more workers or a smaller spec.training.globalBatchSize"));
}

std::span<const pserver::sparse::RowsPush> SparseRows::pushes() {
  for (std::size_t t = 0; t < model::kTables; ++t) {
    pushes_[t] = {static_cast<int>(t), batch_.ids(t), batch_.gradients(t)};
  }
  return pushes_;
}

}  // namespace paceline::trainer
