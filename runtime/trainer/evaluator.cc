#include "runtime/trainer/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <numeric>
#include <stdexcept>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status.h"
#include "runtime/trainer/batch.h"
#include "runtime/trainer/passes.h"

namespace paceline::trainer {

namespace {
constexpr std::size_t kScoreBytes = 2 * sizeof(float);  // one for each label
}  // namespace

std::string in_words(const EvaluationResult& result) {
  return absl::StrFormat("loss %.4f, accuracy %.4f%s on %d held-out samples", result.loss, result.accuracy,
                         result.auc.has_value() ? absl::StrFormat(", AUC %.4f", *result.auc) : "",
                         result.samples);
}

std::int64_t evaluation_rows(const v1::TrainingSpec& spec, const Workload& workload) {
  std::int64_t most = workload.data.test->size();
  if (workload.sparse.has_value()) most = std::min(most, max_samples_of_pull(*workload.sparse));
  return std::max<std::int64_t>(1, std::min(spec.evaluation().batch_size(), most));
}

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::create(
    std::shared_ptr<const data::Dataset> dataset, std::unique_ptr<tensor::Program> program,
    const std::optional<model::WideAndDeepShape>& sparse) {
  std::unique_ptr<SparseRows> rows;
  if (sparse.has_value()) {
    PL_ASSIGN_OR_RETURN(rows, SparseRows::create(*sparse, program->max_rows(), Purpose::kEvaluation));
  }
  std::unique_ptr<Evaluator> evaluator(
      new Evaluator(std::move(dataset), std::move(program), std::move(rows)));
  PL_RETURN_IF_ERROR(evaluator->reserve_scores());
  return evaluator;
}

// An AUC ranks all samples, so that all their scores are kept: of either label there may be as many.
absl::Status Evaluator::reserve_scores() {
  if (!scores()) return absl::OkStatus();
  const auto samples = static_cast<std::uint64_t>(dataset_->size());
  try {
    auc_.reserve(static_cast<std::size_t>(samples));
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  const double gib = std::ldexp(static_cast<double>(samples) * kScoreBytes, -30);
  return absl::ResourceExhaustedError(str_cat("no memory to rank ", samples,
                                              " held-out samples for their AUC: ", kScoreBytes,
                                              " bytes each are ", absl::StrFormat("%.1f GiB", gib),
                                              "; hold fewer samples out (data.testFraction, or "
                                              "data.clicks.samples), or give this member more memory"));
}

Evaluator::Evaluator(std::shared_ptr<const data::Dataset> dataset, std::unique_ptr<tensor::Program> program,
                     std::unique_ptr<SparseRows> rows)
    : dataset_(std::move(dataset)),
      program_(std::move(program)),
      indices_(static_cast<std::size_t>(program_->max_rows())),
      rows_(std::move(rows)) {
  if (rows_ == nullptr) return;
  tokens_.resize(static_cast<std::size_t>(program_->max_rows() * dataset_->shape().elements()));
}

absl::StatusOr<data::BatchView> Evaluator::fetch(std::int64_t begin, std::int64_t end) {
  const std::span<std::int64_t> rows = std::span(indices_).first(static_cast<std::size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  tensor::BatchMemory memory = program_->batch();
  if (rows_ != nullptr) memory.tokens = tokens_;  // the program has none: it takes what their rows say
  const data::BatchView view = batch_view(memory, dataset_->shape(), end - begin);
  const absl::Status fetched = dataset_->fetch(rows, 0, view);
  if (fetched.ok()) return view;
  return input_error(fetched, str_cat("held-out samples ", begin, " to ", end - 1));
}

absl::StatusOr<bool> Evaluator::has_both_labels(const std::function<absl::Status()>& go_on) {
  bool positive = false, negative = false;
  for (std::int64_t begin = 0; begin < dataset_->size() && !(positive && negative);) {
    PL_RETURN_IF_ERROR(go_on());
    const std::int64_t next = std::min(dataset_->size(), begin + program_->max_rows());
    PL_ASSIGN_OR_RETURN(const data::BatchView view, fetch(begin, next));
    for (const std::int32_t label : view.labels) (label == 1 ? positive : negative) = true;
    begin = next;
  }
  return positive && negative;
}

absl::Status Evaluator::add_rows(std::int64_t begin, std::int64_t end, const SparseRows::Pull& pull) {
  PL_ASSIGN_OR_RETURN(const data::BatchView view, fetch(begin, end));
  const tensor::BatchMemory memory = program_->batch();
  if (rows_ != nullptr) {
    PL_RETURN_IF_ERROR(rows_->pull(view.tokens, pull));
    rows_->batch().gather(0, end - begin, memory);
  }
  const absl::StatusOr<tensor::ForwardResult> forward = program_->forward(end - begin);
  if (!forward.ok()) return own_fault(forward.status());
  const tensor::ForwardResult& result = *forward;
  if (!memory.scores.empty())
    auc_.add(memory.scores.first(static_cast<std::size_t>(end - begin)), view.labels);
  sums_.loss_sum += result.loss_sum;
  sums_.correct += result.correct;
  sums_.label_count += result.label_count;
  return absl::OkStatus();
}

absl::Status Evaluator::add_samples(std::int64_t begin, std::int64_t end,
                                    const std::function<absl::Status()>& go_on,
                                    const SparseRows::Pull& pull) {
  sums_ = {};
  auc_.clear();
  program_->weights_changed();
  while (begin < end) {
    PL_RETURN_IF_ERROR(go_on());
    const std::int64_t next = std::min(end, begin + program_->max_rows());
    PL_RETURN_IF_ERROR(add_rows(begin, next, pull));
    begin = next;
  }
  return absl::OkStatus();
}

absl::StatusOr<EvaluationResult> Evaluator::run_alone(const std::function<absl::Status()>& go_on,
                                                      const SparseRows::Pull& pull) {
  PL_CHECK((rows_ != nullptr) == (pull != nullptr), "rows are pulled for a model with tables");
  PL_RETURN_IF_ERROR(add_samples(0, dataset_->size(), go_on, pull));
  const auto labels = static_cast<double>(sums_.label_count);
  return EvaluationResult{sums_.loss_sum / static_cast<double>(dataset_->size()),
                          labels > 0 ? static_cast<double>(sums_.correct) / labels : 0, dataset_->size(),
                          auc_.value()};
}

absl::StatusOr<EvaluationResult> Evaluator::run(collective::Communicator& communicator, const Clock& clock,
                                                Duration timeout) {
  PL_CHECK(rows_ == nullptr, "tables lie on servers");
  const auto samples = static_cast<std::size_t>(dataset_->size());
  const int world = communicator.world_size(), rank = communicator.rank();
  PL_RETURN_IF_ERROR(add_samples(
      static_cast<std::int64_t>(collective::block_begin(samples, world, rank)),
      static_cast<std::int64_t>(collective::block_begin(samples, world, rank + 1)),
      [&communicator] { return communicator.closed(); }, nullptr));
  // Counts are exact in doubles up to 2^53.
  std::array<double, 3> sums = {sums_.loss_sum, static_cast<double>(sums_.correct),
                                static_cast<double>(sums_.label_count)};
  PL_RETURN_IF_ERROR(communicator.all_reduce(sums.data(), sums.size(), DType::kF64,
                                             collective::ReduceOp::kSum,
                                             Deadline::after(clock.now(), timeout)));
  return EvaluationResult{sums[0] / static_cast<double>(samples), sums[2] > 0 ? sums[1] / sums[2] : 0,
                          dataset_->size(), std::nullopt};
}

}  // namespace paceline::trainer
