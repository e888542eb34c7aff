#pragma once

// Whether the AUC that a job shall reach can be reached at all: told before the training, and not at its end.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/data/open.h"
#include "runtime/trainer/evaluator.h"

namespace paceline::trainer {

// What there is to warn of; empty: nothing. INVALID_ARGUMENT: the model gives no scores; no or all held-out
// samples are positive; the data's best AUC is known, and `target` is further above it than chance goes on
// the held-out samples. Errors of the data set and of `go_on`, which is asked while labels are read.
absl::StatusOr<std::string> check_auc_target(double target, Evaluator& evaluator, const data::Datasets& data,
                                             const std::function<absl::Status()>& go_on);

}  // namespace paceline::trainer
