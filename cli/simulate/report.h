#pragma once

// What `paceline simulate` prints and draws. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/plot/chart.h"
#include "runtime/simulation/stragglers.h"
#include "runtime/simulation/virtual_training.h"

namespace paceline::cli {

// The lines of a table whose first column alone is flush left.
std::string table_text(const std::vector<std::vector<std::string>>& rows);

// ---- stragglers ----
std::string stragglers_text(const simulation::StragglerCase& result);
std::string stragglers_json(const std::vector<simulation::StragglerCase>& results,
                            const simulation::StragglerOptions& options);
// The rate by backup workers, a chart for each sigma; the time of a step by sigma, one for each number of
// workers.
std::vector<Chart> stragglers_charts(const std::vector<simulation::StragglerCase>& results);

// ---- training ----

// One mode's trainings, which differ by their seeds.
struct TrainedMode {
  std::vector<simulation::TrainingResult> runs;  // at least one
};

// The middle of what the runs say; with an even number the worse of the two in the middle.
struct TrainedSummary {
  std::string mode;
  int runs = 0, reached = 0, diverged = 0;
  double ms = 0;  // to the target, or to the end where there is none; infinite where most did not reach it
  double step_ms = 0;
  Step steps = 0;
  double accuracy = 0;
  double mean_staleness = 0;
  std::int64_t max_staleness = 0;
  double dropped = 0;  // part of the gradients that were computed
};
TrainedSummary summary_of(const TrainedMode& mode, bool has_target);

struct TrainingCase {
  int workers = 0;
  double log_deviation = 0;
  std::string target;              // "accuracy 0.97"; empty: none
  std::vector<TrainedMode> modes;  // synchronous first
};

std::string training_text(const TrainingCase& result);
std::string training_json(const std::vector<TrainingCase>& results, std::uint64_t seed);
// Accuracy by virtual time, of each mode's first run.
std::vector<Chart> training_charts(const std::vector<TrainingCase>& results);

}  // namespace paceline::cli
