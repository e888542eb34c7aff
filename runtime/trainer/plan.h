#pragma once

// From the job's spec and the size of its data to the numbers that training runs by. Pure.

#include <cstdint>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/trainer/step_machine.h"

namespace paceline::trainer {

// `test_samples` is 0 where nothing is held out. INVALID_ARGUMENT names the field: neither steps nor epochs,
// an empty training set, a global batch below 1 or larger than the training set, a target without held-out
// samples, of an unknown metric, or an AUC without parameter servers.
absl::StatusOr<StepPlan> make_plan(const v1::TrainingSpec& spec, std::int64_t train_samples,
                                   std::int64_t test_samples);

// Samples of one pass in a member that takes `rows` samples of a step: micro_batch_size; where there is none,
// all of them, but no more than an equal share of `trainers` members: a view that has lost some takes more
// passes, and no more memory. `trainers` 0: nobody is missing.
std::int64_t pass_rows(const v1::TrainingSpec& spec, std::int64_t rows, std::int64_t trainers = 0);

// Samples that count in so many steps: whole global batches, but where servers leave gradients out
// (gradients_per_step below units_per_step); then as a mean, since parts of a batch may differ by one.
std::int64_t samples_of_steps(const v1::TrainingSpec& spec, Step steps);

}  // namespace paceline::trainer
