#pragma once

// The cells that listings of runs and of jobs share. Pure.

#include <string>
#include <vector>

#include "cli/state/run_state.h"
#include "controller/api/types.h"

namespace paceline::cli {

// STEP, LOSS, ACCURACY, SAMPLES/S; "-" for what is not known.
std::vector<std::string> progress_cells(const RunState& state);

// "accuracy >= 0.9", "auc >= 0.7", "loss <= 1.5", or empty.
std::string target_text(const api::Training& training);

}  // namespace paceline::cli
