#pragma once

// A run's metrics, read back from the lines of metrics.jsonl (docs/metrics.md). Pure.

#include <cstddef>
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
  std::size_t skipped_lines = 0;  // that are not objects with a type and a step: torn by a crash
};

// A step that comes again replaces itself and what was behind it: the run went on from a checkpoint.
// Never fails: lines that make no sense are counted and skipped, lines of other types are ignored.
RunMetrics parse_metrics(std::string_view text);

// The same from two answers of a dashboard, JOB/series and JOB/heatmap?parts=step (docs/dashboard-api.md).
// Nothing: they are no such answers.
std::optional<RunMetrics> metrics_of(std::string_view series, std::string_view heat_map);

}  // namespace paceline::cli
