#pragma once

// What a job with spec.training is to do, in lines for people: who trains how, when it ends, what it saves.
// Pure.

#include <string>
#include <vector>

#include "controller/api/types.h"

namespace paceline::cli {

// "4 members that train together", "4 members that train side by side, 2 servers that hold the weights".
std::string members_text(const api::TrainingJob& job);

// The sentences on spec.preflight and on spec.strategy.allReduce.maxDropRate; empty: the job has none.
std::string preflight_text(const api::TrainingJob& job);
std::string partial_steps_text(const api::TrainingJob& job);

// A warning that a job saves no checkpoint while it trains; empty: it saves some.
std::string unsaved_text(const api::TrainingJob& job);

// Each a sentence without a full stop: the samples of a step, what parameter servers wait for, partial steps,
// the check before the first one, the end, the checkpoints, the evaluator.
std::vector<std::string> outline_lines(const api::TrainingJob& job);

}  // namespace paceline::cli
