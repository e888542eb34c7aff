#pragma once

// The rows of sparse tables that a batch of samples needs: looked up and pulled before its first pass, their
// gradients pushed after its last (model/wide_and_deep_batch.h). One thread; nothing is allocated after
// construction.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/model/wide_and_deep_batch.h"
#include "runtime/pserver/sparse/rows.h"
#include "runtime/trainer/workload.h"
#include "runtime/transport/memory.h"

namespace paceline::trainer {

// Lookups of the samples of one batch. With sparse::kMaxRowsPerCall and kMaxFloatsPerCall it is what
// validation refuses where it knows the data (controller/api/rules.h).
inline constexpr std::int64_t kMaxLookups = std::int64_t{1} << 28;

// Samples whose rows one call may pull, however few of them are the same.
std::int64_t max_samples_of_pull(const model::WideAndDeepShape& shape);

class SparseRows {
 public:
  // Fills the rows, as pserver::Client::pull_rows().
  using Pull = std::function<absl::Status(std::span<const pserver::sparse::RowsPull> pulls)>;

  // Of batches of at most `max_samples` samples, which are a worker's part of a global batch, or an
  // evaluation's. INVALID_ARGUMENT: they may need more rows, floats or lookups than there may be at once, if
  // no more of them are the same than the shape says. RESOURCE_EXHAUSTED: memory. Either says what to change.
  static absl::StatusOr<std::unique_ptr<SparseRows>> create(const model::WideAndDeepShape& shape,
                                                            std::int64_t max_samples, Purpose purpose);
  // Gradients lie in the arena from now on, where servers may read them. RESOURCE_EXHAUSTED.
  absl::Status place_gradients(transport::Arena& arena);

  // Of these samples, one after the other, from now on; gradients that have a place are zero. The error of
  // `pull`.
  absl::Status pull(std::span<const std::int32_t> tokens, const Pull& pull);
  // Between its passes: gather() and scatter().
  model::WideAndDeepBatch& batch() { return batch_; }
  // What the samples' passes left. Valid until the next pull().
  std::span<const pserver::sparse::RowsPush> pushes();

 private:
  SparseRows(const model::WideAndDeepShape& shape, std::int64_t max_samples) : batch_(shape, max_samples) {}

  model::WideAndDeepBatch batch_;
  std::array<pserver::sparse::RowsPull, model::kTables> pulls_;
  std::array<pserver::sparse::RowsPush, model::kTables> pushes_;
};

}  // namespace paceline::trainer
