#include "runtime/trainer/evaluator.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/status.h"
#include "runtime/trainer/batch.h"

namespace paceline::trainer {

Evaluator::Evaluator(std::shared_ptr<const data::Dataset> dataset, std::unique_ptr<tensor::Program> program)
    : dataset_(std::move(dataset)),
      program_(std::move(program)),
      indices_(static_cast<std::size_t>(program_->max_rows())) {}

absl::Status Evaluator::add_rows(std::int64_t begin, std::int64_t end) {
  const std::span<std::int64_t> rows = std::span(indices_).first(static_cast<std::size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), begin);
  const absl::Status fetched =
      dataset_->fetch(rows, 0, batch_view(program_->batch(), dataset_->shape(), end - begin));
  if (!fetched.ok()) {  // this member's own fault, whatever the code: no peer is to blame for input
    return absl::InternalError(str_cat("held-out samples ", begin, " to ", end - 1, ": ", fetched.message()));
  }
  const tensor::ForwardResult result = program_->forward(end - begin);
  sums_.loss_sum += result.loss_sum;
  sums_.correct += result.correct;
  sums_.label_count += result.label_count;
  return absl::OkStatus();
}

absl::Status Evaluator::add_samples(std::int64_t begin, std::int64_t end,
                                    const std::function<absl::Status()>& go_on) {
  sums_ = {};
  program_->weights_changed();
  while (begin < end) {
    PL_RETURN_IF_ERROR(go_on());
    const std::int64_t next = std::min(end, begin + program_->max_rows());
    PL_RETURN_IF_ERROR(add_rows(begin, next));
    begin = next;
  }
  return absl::OkStatus();
}

absl::StatusOr<EvaluationResult> Evaluator::run_alone(const std::function<absl::Status()>& go_on) {
  PL_RETURN_IF_ERROR(add_samples(0, dataset_->size(), go_on));
  const auto labels = static_cast<double>(sums_.label_count);
  return EvaluationResult{sums_.loss_sum / static_cast<double>(dataset_->size()),
                          labels > 0 ? static_cast<double>(sums_.correct) / labels : 0, dataset_->size()};
}

absl::StatusOr<EvaluationResult> Evaluator::run(collective::Communicator& communicator, const Clock& clock,
                                                Duration timeout) {
  const auto samples = static_cast<std::size_t>(dataset_->size());
  const int world = communicator.world_size(), rank = communicator.rank();
  PL_RETURN_IF_ERROR(add_samples(static_cast<std::int64_t>(collective::block_begin(samples, world, rank)),
                                 static_cast<std::int64_t>(collective::block_begin(samples, world, rank + 1)),
                                 [&communicator] { return communicator.closed(); }));
  // Counts are exact in doubles up to 2^53.
  std::array<double, 3> sums = {sums_.loss_sum, static_cast<double>(sums_.correct),
                                static_cast<double>(sums_.label_count)};
  PL_RETURN_IF_ERROR(communicator.all_reduce(sums.data(), sums.size(), DType::kF64,
                                             collective::ReduceOp::kSum,
                                             Deadline::after(clock.now(), timeout)));
  return EvaluationResult{sums[0] / static_cast<double>(samples), sums[2] > 0 ? sums[1] / sums[2] : 0,
                          dataset_->size()};
}

}  // namespace paceline::trainer
