#include "cli/plot/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/plot/json_line.h"

namespace paceline::cli {

namespace {

using Json = nlohmann::json;

double number(const Json& line, const char* field) {
  const auto found = line.find(field);
  if (found == line.end() || !found->is_number()) return std::numeric_limits<double>::quiet_NaN();
  return found->get<double>();
}

std::string text(const Json& line, const char* field) {
  const auto found = line.find(field);
  return found == line.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

// The numbers of a list; anything else is NaN.
std::vector<double> numbers(const Json& list) {
  std::vector<double> found;
  if (!list.is_array()) return found;
  for (const Json& each : list)
    found.push_back(each.is_number() ? each.get<double>() : std::numeric_limits<double>::quiet_NaN());
  return found;
}

std::vector<double> numbers(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found == object.end() ? std::vector<double>() : numbers(*found);
}

// A step that comes again is where the run went on from an earlier checkpoint: what was behind it is gone.
template <typename Point>
void add_step(std::vector<Point>& points, const Point& point) {
  while (!points.empty() && points.back().step >= point.step) points.pop_back();
  points.push_back(point);
}

void add_evaluation(std::vector<EvaluationPoint>& points, const EvaluationPoint& point) {
  const auto behind = std::ranges::lower_bound(points, point.step, {}, &EvaluationPoint::step);
  if (behind != points.end() && behind->step == point.step) {
    *behind = point;
  } else {
    points.insert(behind, point);
  }
}

void add_line(std::string_view line, RunMetrics& metrics) {
  const Json json = parse_json_line(line);
  if (json.is_null()) return;
  const std::string type = text(json, "type");
  const double step = number(json, "step");
  if (!(step >= 0)) return;
  if (type == "step") {
    add_step(metrics.steps, {step, number(json, "loss")});
    while (!metrics.evaluations.empty() && metrics.evaluations.back().step > step)
      metrics.evaluations.pop_back();
  } else if (type == "evaluation") {
    add_evaluation(metrics.evaluations, {step, number(json, "loss"), number(json, "accuracy")});
  } else if (type == "memberStep") {
    const std::string member = text(json, "member");
    if (!member.empty()) add_step(metrics.members[member], {step, number(json, "stepMs")});
  }
}

}  // namespace

std::optional<RunMetrics> metrics_of(std::string_view series_text, std::string_view heat_map_text) {
  const Json series = parse_json_line(series_text, series_text.size());
  const Json map = parse_json_line(heat_map_text, heat_map_text.size());
  const std::vector<double> steps = numbers(series, "step"), loss = numbers(series, "loss");
  const std::vector<double> columns = numbers(map, "steps");
  const Json::const_iterator members = map.find("members"), values = map.find("values");
  if (steps.size() != loss.size() || members == map.end() || values == map.end()) return std::nullopt;
  RunMetrics metrics;
  for (std::size_t i = 0; i < steps.size(); ++i) metrics.steps.push_back({steps[i], loss[i]});
  if (const auto list = series.find("evaluations"); list != series.end() && list->is_array()) {
    for (const Json& each : *list) {
      if (each.is_object())
        metrics.evaluations.push_back({number(each, "step"), number(each, "loss"), number(each, "accuracy")});
    }
  }
  const auto times = values->is_object() ? values->find("step") : values->end();
  if (!members->is_array() || times == values->end() || times->size() != members->size()) return std::nullopt;
  for (std::size_t row = 0; row < members->size(); ++row) {
    const std::vector<double> ms = numbers((*times)[row]);
    const std::string member = (*members)[row].is_object() ? text((*members)[row], "name") : "";
    if (member.empty() || ms.size() != columns.size()) return std::nullopt;
    for (std::size_t i = 0; i < ms.size(); ++i) {
      if (!std::isnan(ms[i])) metrics.members[member].push_back({columns[i], ms[i]});
    }
  }
  return metrics;
}

RunMetrics parse_metrics(std::string_view text) {
  RunMetrics metrics;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    add_line(line, metrics);
  }
  return metrics;
}

}  // namespace paceline::cli
