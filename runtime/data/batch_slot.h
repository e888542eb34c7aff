#pragma once

// One batch and the memory that it is prepared in. One thread at a time; nothing is allocated after
// construction but what the plan and the data set do themselves.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/data/dataset.h"

namespace paceline::data {

struct Batch {
  std::int64_t step = 0;                  // or the unit
  std::span<const std::int64_t> indices;  // the rows' samples
  std::span<const float> inputs;          // rows * elements, or empty for tokens
  std::span<const std::int32_t> tokens;   // rows * block_size, or empty for floats
  std::span<const std::int32_t> labels;   // rows * shape.labels
  std::int64_t rows() const { return static_cast<std::int64_t>(indices.size()); }
};

// Puts the samples of step (or unit) `step` into `indices` (cleared, with capacity for the most rows) and
// returns the augmentation seed, 0 for none.
using BatchPlan = std::function<std::uint64_t(std::int64_t step, std::vector<std::int64_t>& indices)>;

// Batches smaller than this are prepared by the caller itself: waking a thread costs more than converting
// them (a hand-over is 5 to 20 us, and 64 KiB are converted in about 15).
inline constexpr std::int64_t kInlineBatchBytes = 64 * 1024;
// What `rows` samples take.
std::int64_t batch_bytes(const SampleShape& shape, std::int64_t rows);

class BatchSlot {
 public:
  BatchSlot(const SampleShape& shape, std::int64_t max_rows);

  // Fetches what `plan` says; what came of it is status().
  void prepare(const Dataset& dataset, const BatchPlan& plan, std::int64_t step);
  const absl::Status& status() const { return status_; }
  // The last prepared one, valid until the next is.
  Batch batch() const;

 private:
  const SampleShape shape_;
  const std::int64_t max_rows_;
  std::int64_t step_ = 0;
  std::vector<std::int64_t> indices_;
  std::vector<float> inputs_;
  std::vector<std::int32_t> tokens_, labels_;
  absl::Status status_;
};

}  // namespace paceline::data
