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

absl::StatusOr<EvaluationResult> Evaluator::run(collective::Communicator& communicator, const Clock& clock,
                                                Duration timeout) {
  sums_ = {};
  program_->weights_changed();
  const auto samples = static_cast<std::size_t>(dataset_->size());
  const int world = communicator.world_size(), rank = communicator.rank();
  auto at = static_cast<std::int64_t>(collective::block_begin(samples, world, rank));
  const auto end = static_cast<std::int64_t>(collective::block_begin(samples, world, rank + 1));
  while (at < end) {
    PL_RETURN_IF_ERROR(communicator.closed());
    const std::int64_t next = std::min(end, at + program_->max_rows());
    PL_RETURN_IF_ERROR(add_rows(at, next));
    at = next;
  }
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
