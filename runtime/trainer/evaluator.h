#pragma once

// Evaluation on the held-out samples: by all members of a view, each of which takes a block of them, the sums
// meeting in one small all-reduce, so that all members see the same result; or by one alone. One thread; no
// allocation after construction.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/collective/communicator.h"
#include "runtime/data/auc.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/program.h"
#include "runtime/trainer/sparse_rows.h"
#include "runtime/trainer/workload.h"

namespace paceline::trainer {

struct EvaluationResult {
  double loss = 0;      // mean over the samples
  double accuracy = 0;  // part of the label positions that were right
  std::int64_t samples = 0;
  // Of models that score a sample with one number, where both labels occur.
  std::optional<double> auc = std::nullopt;
};
// "loss 0.4612, accuracy 0.7930, AUC 0.7012 on 20000 held-out samples"
std::string in_words(const EvaluationResult& result);

// Samples of one batch: as the spec says, but no more than are held out, or than rows are pulled for at once.
std::int64_t evaluation_rows(const v1::TrainingSpec& spec, const Workload& workload);

class Evaluator {
 public:
  // `program` is bound to the weights; its max_rows() is the size of a batch. `sparse`: of a model with
  // tables. INVALID_ARGUMENT, RESOURCE_EXHAUSTED: SparseRows::create(); RESOURCE_EXHAUSTED: no memory to rank
  // so many samples.
  static absl::StatusOr<std::unique_ptr<Evaluator>> create(
      std::shared_ptr<const data::Dataset> dataset, std::unique_ptr<tensor::Program> program,
      const std::optional<model::WideAndDeepShape>& sparse = std::nullopt);

  // Without an AUC. The communicator's errors (at once when it closes, within one batch); INTERNAL: the data
  // set's. A peer that doesn't come within `timeout` after this member's part is an error. REQUIRES: no
  // tables.
  absl::StatusOr<EvaluationResult> run(collective::Communicator& communicator, const Clock& clock,
                                       Duration timeout);

  // All samples here. `go_on` is asked between batches: its error is the result. `pull` gives the rows of a
  // model with tables.
  absl::StatusOr<EvaluationResult> run_alone(const std::function<absl::Status()>& go_on,
                                             const SparseRows::Pull& pull = nullptr);

  tensor::Program& program() { return *program_; }

  // Whether the model scores a sample with one number, and, so far as the labels have to be read to know it,
  // whether samples with both labels are held out: without either there is no AUC. `go_on` as above.
  bool scores() { return !program_->batch().scores.empty(); }
  absl::StatusOr<bool> has_both_labels(const std::function<absl::Status()>& go_on);

 private:
  Evaluator(std::shared_ptr<const data::Dataset> dataset, std::unique_ptr<tensor::Program> program,
            std::unique_ptr<SparseRows> rows);
  absl::Status reserve_scores();
  absl::Status add_samples(std::int64_t begin, std::int64_t end, const std::function<absl::Status()>& go_on,
                           const SparseRows::Pull& pull);
  // Into the program's memory, but for the tokens of a model with tables.
  absl::StatusOr<data::BatchView> fetch(std::int64_t begin, std::int64_t end);
  absl::Status add_rows(std::int64_t begin, std::int64_t end, const SparseRows::Pull& pull);

  const std::shared_ptr<const data::Dataset> dataset_;
  const std::unique_ptr<tensor::Program> program_;
  std::vector<std::int64_t> indices_;
  const std::unique_ptr<SparseRows> rows_;  // null: no tables
  std::vector<std::int32_t> tokens_;        // of a batch whose rows are pulled
  tensor::ForwardResult sums_;
  data::Auc auc_;
};

}  // namespace paceline::trainer
