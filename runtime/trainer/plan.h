#pragma once

// From the job's spec and the size of its data to the numbers that training runs by. Pure.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/trainer/step_machine.h"

namespace paceline::trainer {

// `test_samples` is 0 where nothing is held out. INVALID_ARGUMENT names the field: neither steps nor epochs,
// an empty training set, a global batch below 1, a target without held-out samples or of an unknown metric.
absl::StatusOr<StepPlan> make_plan(const v1::TrainingSpec& spec, std::int64_t train_samples,
                                   std::int64_t test_samples);

// Samples of one pass in a member that takes `rows` samples of a step: micro_batch_size, or all of them.
std::int64_t pass_rows(const v1::TrainingSpec& spec, std::int64_t rows);

// Names what a checkpoint must have been made by to be continued by this job: the model, the kind of
// optimizer, the global batch, the seed and the precision. Lengths, rates, targets and places may differ.
std::string spec_hash(const v1::TrainingSpec& spec);

}  // namespace paceline::trainer
