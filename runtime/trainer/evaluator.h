#pragma once

// Evaluation on the held-out samples: by all members of a view, each of which takes a block of them, the sums
// meeting in one small all-reduce, so that all members see the same result; or by one alone. One thread; no
// allocation after construction.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/collective/communicator.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/program.h"

namespace paceline::trainer {

struct EvaluationResult {
  double loss = 0;      // mean over the samples
  double accuracy = 0;  // part of the label positions that were right
  std::int64_t samples = 0;
};

class Evaluator {
 public:
  // `program` is bound to the weights; its max_rows() is the size of a batch.
  Evaluator(std::shared_ptr<const data::Dataset> dataset, std::unique_ptr<tensor::Program> program);

  // The communicator's errors (at once when it closes, within one batch); INTERNAL: the data set's. A peer
  // that doesn't come within `timeout` after this member's part is an error.
  absl::StatusOr<EvaluationResult> run(collective::Communicator& communicator, const Clock& clock,
                                       Duration timeout);

  // All samples here. `go_on` is asked between batches: its error is the result.
  absl::StatusOr<EvaluationResult> run_alone(const std::function<absl::Status()>& go_on);

 private:
  absl::Status add_samples(std::int64_t begin, std::int64_t end, const std::function<absl::Status()>& go_on);
  absl::Status add_rows(std::int64_t begin, std::int64_t end);

  const std::shared_ptr<const data::Dataset> dataset_;
  const std::unique_ptr<tensor::Program> program_;
  std::vector<std::int64_t> indices_;
  tensor::ForwardResult sums_;
};

}  // namespace paceline::trainer
