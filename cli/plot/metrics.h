#pragma once

// A run's metrics, read back from the lines of metrics.jsonl (docs/metrics.md). Pure.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::cli {

// NaN: not known, or not a finite number.
struct StepPoint {
  double step = 0;
  double loss = 0;
};

struct EvaluationPoint {
  double step = 0;
  double loss = 0;
  double accuracy = 0;
};

struct MemberPoint {
  double step = 0;
  double step_ms = 0;
};

// By rising step, each once.
struct RunMetrics {
  std::vector<StepPoint> steps;
  std::vector<EvaluationPoint> evaluations;
  std::map<std::string, std::vector<MemberPoint>> members;  // by member: "chief-0", "worker-1"
};

// A step that comes again replaces itself and what was behind it: the run went on from a checkpoint.
// Never fails: lines that make no sense, torn by a crash, are skipped, and so are lines of other types.
RunMetrics parse_metrics(std::string_view text);

// The same from two answers of a dashboard, JOB/series and JOB/heatmap?parts=step (docs/dashboard-api.md).
// Nothing: they are no such answers.
std::optional<RunMetrics> metrics_of(std::string_view series, std::string_view heat_map);

}  // namespace paceline::cli
