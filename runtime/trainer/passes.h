#pragma once

// One gradient: forward and backward over the samples of a batch, pass by pass (microBatchSize). One thread;
// nothing is allocated after the first passes of each size.

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/data/dataset.h"
#include "runtime/data/prefetcher.h"
#include "runtime/model/wide_and_deep_batch.h"
#include "runtime/tensor/program.h"

namespace paceline::trainer {

class Passes {
 public:
  // `spec` and `program` (bound to weights and gradient) outlive it, and `rows`, which are those of the
  // batches of a model with tables; null: it has none. `trainers`: as pass_rows() has it.
  Passes(const v1::TrainingSpec& spec, const data::SampleShape& shape, tensor::Program& program,
         model::WideAndDeepBatch* rows = nullptr, std::int64_t trainers = 0)
      : spec_(spec), shape_(shape), program_(program), rows_(rows), trainers_(trainers) {}

  // Of the samples, scaled by 1/globalBatchSize, written over the bound gradient. Before the last pass is
  // backward's end `before_last` hears the loss, summed over all samples; its error ends the passes and is
  // theirs; a device's is INTERNAL. `on_ready` hears of ranges in the last pass only: no others are final.
  // Gradients of rows are added to what is there.
  using BeforeLast = std::function<absl::Status(double loss_sum)>;
  absl::Status run(const data::Batch& batch, const BeforeLast& before_last,
                   const tensor::Program::OnReady& on_ready);
  // Asked before each pass but the first, with so many samples done: where it says no, the rest is left out,
  // and `before_last` and `on_ready`, of the whole gradient, follow at once. On the host only.
  using GoesOn = std::function<bool(std::int64_t done)>;
  void ask(GoesOn goes_on) { goes_on_ = std::move(goes_on); }
  // Hears when the gradient is about to be written over.
  void before_gradient(std::function<void()> hook) { before_gradient_ = std::move(hook); }

 private:
  const v1::TrainingSpec& spec_;
  const data::SampleShape shape_;
  tensor::Program& program_;
  model::WideAndDeepBatch* const rows_;
  const std::int64_t trainers_;
  std::function<void()> before_gradient_;   // null: nobody is to hear
  GoesOn goes_on_;                          // null: always
  const tensor::Program::OnReady not_yet_;  // null: more passes follow
};

// A device's error as this member's own, whatever its code: no peer is to blame.
absl::Status own_fault(const absl::Status& device_error);

// An error of this member's samples, where no peer is to blame either. DATA_LOSS: they can't be read, or are
// not as they must be. RESOURCE_EXHAUSTED: memory. INTERNAL: they came too late, or their reader was stopped.
absl::Status input_error(const absl::Status& error, std::string_view what);

// Of the augmentation of one step; 0: there is none.
std::uint64_t augmentation_seed(const v1::TrainingSpec& spec, std::int64_t step);

}  // namespace paceline::trainer
