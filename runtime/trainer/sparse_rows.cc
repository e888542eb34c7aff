#include "runtime/trainer/sparse_rows.h"

#include <algorithm>
#include <new>
#include <string>

#include "base/status.h"

namespace paceline::trainer {

namespace {

using pserver::sparse::kMaxFloatsPerCall;
using pserver::sparse::kMaxRowsPerCall;

// What the samples may need that is more than there may be; empty: nothing.
std::string excess_of(const model::WideAndDeepShape& shape, std::int64_t samples) {
  const model::SampleNeeds needs = model::needs_of(shape, samples);
  const std::int64_t rows = *std::max_element(needs.rows.begin(), needs.rows.end());
  const auto more = [](std::int64_t needed, std::size_t allowed, const char* of) {
    return str_cat(needed, of, "; allowed: up to ", allowed);
  };
  if (rows > static_cast<std::int64_t>(kMaxRowsPerCall))
    return more(rows, kMaxRowsPerCall, " rows of one table");
  if (needs.floats > static_cast<std::int64_t>(kMaxFloatsPerCall))
    return more(needs.floats, kMaxFloatsPerCall, " floats of rows");
  if (needs.lookups > kMaxLookups) return more(needs.lookups, kMaxLookups, " values and crosses");
  return "";
}

}  // namespace

std::int64_t max_samples_of_pull(const model::WideAndDeepShape& shape) {
  std::int64_t most = 0, too_many = kMaxLookups + 1;  // a sample has a lookup
  while (too_many - most > 1) {
    const std::int64_t middle = most + (too_many - most) / 2;
    (excess_of(shape, middle).empty() ? most : too_many) = middle;
  }
  return most;
}

absl::StatusOr<std::unique_ptr<SparseRows>> SparseRows::create(const model::WideAndDeepShape& shape,
                                                               std::int64_t max_samples, Purpose purpose) {
  const bool trains = purpose == Purpose::kTraining;
  const char* const batch = trains ? "a worker's part of a global batch" : "a batch of an evaluation";
  const char* const fewer = trains ? "take more workers or a smaller spec.training.globalBatchSize"
                                   : "take a smaller spec.training.evaluation.batchSize";
  if (const std::string excess = excess_of(shape, max_samples); !excess.empty()) {
    return absl::InvalidArgumentError(str_cat(
        batch, " is of ", max_samples, max_samples == 1 ? " sample" : " samples", ", which may need up to ",
        excess, "; ", max_samples == 1 ? "take fewer fields, or narrower tables" : fewer,
        shape.vocabularies.empty()
            ? ", or let the data set say how many values its fields have (SampleShape::vocabularies)"
            : ""));
  }
  try {
    return std::unique_ptr<SparseRows>(new SparseRows(shape, max_samples));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(str_cat(
        "no memory for the ", model::WideAndDeepBatch::bytes(shape, max_samples), " bytes that the rows of ",
        max_samples, " samples at once (", batch, ") and the finding of them take; ", fewer));
  }
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
  batch_.clear_gradients();
  for (std::size_t t = 0; t < model::kTables; ++t) {
    pulls_[t] = {static_cast<int>(t), batch_.ids(t), batch_.rows(t)};
  }
  return pull(pulls_);
}

std::span<const pserver::sparse::RowsPush> SparseRows::pushes() {
  for (std::size_t t = 0; t < model::kTables; ++t) {
    pushes_[t] = {static_cast<int>(t), batch_.ids(t), batch_.gradients(t)};
  }
  return pushes_;
}

}  // namespace paceline::trainer
