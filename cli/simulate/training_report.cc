#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/pluralize.h"
#include "base/text.h"
#include "cli/simulate/report.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

namespace {

using simulation::Evaluation;
using simulation::TrainingResult;

// Below it curves say nothing about the modes, and would flatten what is above.
constexpr double kDrawnAccuracy = 0.8;

template <typename T>
T middle(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string seconds(double ms) {
  return std::isfinite(ms) ? fixed(ms / 1000, 2) : "-";
}

}  // namespace

TrainedSummary summary_of(const TrainedMode& mode, bool has_target) {
  TrainedSummary summary{.mode = mode.runs.front().mode.name, .runs = static_cast<int>(mode.runs.size())};
  std::vector<double> ms, step_ms, accuracy, staleness, dropped;
  std::vector<Step> steps;
  for (const TrainingResult& run : mode.runs) {
    summary.reached += run.reached;
    summary.diverged += run.diverged;
    const bool counts = has_target ? run.reached : !run.diverged;
    ms.push_back(counts ? run.cluster.ms : std::numeric_limits<double>::infinity());
    step_ms.push_back(run.cluster.step_ms());
    steps.push_back(run.cluster.steps);
    accuracy.push_back(run.evaluations.empty() ? 0 : run.evaluations.back().accuracy);
    staleness.push_back(run.cluster.staleness.mean());
    summary.max_staleness = std::max(summary.max_staleness, run.cluster.staleness.max());
    dropped.push_back(run.cluster.dropped_part());
  }
  summary.ms = middle(ms);
  summary.step_ms = middle(step_ms);
  summary.steps = middle(steps);
  summary.accuracy = middle(accuracy);
  summary.mean_staleness = middle(staleness);
  summary.dropped = middle(dropped);
  return summary;
}

std::string training_text(const TrainingCase& result) {
  const bool has_target = !result.target.empty();
  std::string text =
      str_cat(pluralize(result.workers, "worker", "workers"), ", sigma ", fixed(result.log_deviation, 2),
              ", ", has_target ? str_cat("to ", result.target) : "all steps", "\n");
  std::vector<std::vector<std::string>> rows = {{"  MODE", "SECONDS", "OF SYNC", "STEPS", "STEP MS",
                                                 "STALENESS", "MAX", "DROPPED", "ACCURACY",
                                                 has_target ? "REACHED" : "ENDED"}};
  const TrainedSummary synchronous = summary_of(result.modes.front(), has_target);
  for (const TrainedMode& mode : result.modes) {
    const TrainedSummary s = summary_of(mode, has_target);
    const bool comparable = std::isfinite(s.ms) && std::isfinite(synchronous.ms);
    rows.push_back({"  " + s.mode, seconds(s.ms), comparable ? fixed(s.ms / synchronous.ms, 2) : "-",
                    str_cat(s.steps), fixed(s.step_ms, 2), fixed(s.mean_staleness, 1),
                    str_cat(s.max_staleness), str_cat(fixed(100 * s.dropped, 1), " %"), fixed(s.accuracy, 4),
                    str_cat(has_target ? s.reached : s.runs - s.diverged, " of ", s.runs,
                            s.diverged > 0 ? str_cat(", ", s.diverged, " diverged") : "")});
  }
  return text + table_text(rows);
}

std::string training_json(const std::vector<TrainingCase>& results, std::uint64_t seed) {
  nlohmann::ordered_json json = {
      {"type", "training"}, {"seed", seed}, {"cases", nlohmann::ordered_json::array()}};
  for (const TrainingCase& each : results) {
    nlohmann::ordered_json modes = nlohmann::ordered_json::array();
    for (const TrainedMode& mode : each.modes) {
      nlohmann::ordered_json runs = nlohmann::ordered_json::array();
      for (const TrainingResult& run : mode.runs) {
        nlohmann::ordered_json evaluations = nlohmann::ordered_json::array();
        for (const Evaluation& e : run.evaluations) {
          evaluations.push_back(
              {{"seconds", e.ms / 1000}, {"step", e.step}, {"loss", e.loss}, {"accuracy", e.accuracy}});
        }
        runs.push_back({{"reached", run.reached},
                        {"diverged", run.diverged},
                        {"seconds", run.cluster.ms / 1000},
                        {"steps", run.cluster.steps},
                        {"stepMs", run.cluster.step_ms()},
                        {"meanStaleness", run.cluster.staleness.mean()},
                        {"maxStaleness", run.cluster.staleness.max()},
                        {"dropped", run.cluster.dropped_part()},
                        {"evaluations", evaluations}});
      }
      const TrainedSummary s = summary_of(mode, !each.target.empty());
      modes.push_back({{"mode", s.mode}, {"seconds", s.ms / 1000}, {"runs", runs}});  // infinite: null
    }
    json["cases"].push_back({{"workers", each.workers},
                             {"sigma", each.log_deviation},
                             {"target", each.target},
                             {"modes", modes}});
  }
  return json.dump(2) + "\n";
}

std::vector<Chart> training_charts(const std::vector<TrainingCase>& results) {
  std::vector<Chart> charts;
  for (const TrainingCase& each : results) {
    Chart chart{str_cat("Accuracy by time, ", pluralize(each.workers, "worker", "workers"), ", sigma ",
                        fixed(each.log_deviation, 2)),
                "seconds, virtual", "correct"};
    for (const TrainedMode& mode : each.modes) {
      Series series{mode.runs.front().mode.name};
      for (const Evaluation& e : mode.runs.front().evaluations) {
        if (e.accuracy >= kDrawnAccuracy) series.points.push_back({e.ms / 1000, e.accuracy});
      }
      chart.series.push_back(std::move(series));
    }
    charts.push_back(std::move(chart));
  }
  return charts;
}

}  // namespace paceline::cli
