#pragma once

// What became of the gradients of a job with parameter servers, in words: which of them make a step, and how
// stale they were. Pure.

#include <optional>
#include <string>
#include <vector>

#include "cli/state/run_state.h"
#include "controller/api/types.h"

namespace paceline::cli {

// Which gradients make a step, where these are not everybody's: of servers with backup workers or with
// gradientsPerStep. Empty for other jobs, and for those without spec.training.
std::optional<StepGradients> step_gradients(const api::TrainingJob& job);
// That count; `job` has spec.training.
double samples_per_step(const api::TrainingJob& job);

// "48 of 64 samples (75 %)", "all 64 samples".
std::string samples_text(const StepGradients& gradients);
// "each step counts the first 3 of 4 gradients: 48 of 64 samples (75 %)".
std::string step_text(const StepGradients& gradients);
// The same, and how many were dropped, as far as workers told. Empty where everybody's gradients count.
std::string gradients_text(const RunState& state);

// All workers' together: "0: 62 %, 1: 21 %, 3-4: 17 % of 12,340 gradients; mean 0.98, most 4". Empty where
// none was stale.
std::string staleness_text(const RunState& state);
// The shares alone for below the workers' table: "staleness of 12,340 gradients:  0: 62 %  1: 21 % ...", at
// most two lines of at most `width`; the least shares go first.
std::vector<std::string> staleness_lines(const RunState& state, int width);

}  // namespace paceline::cli
