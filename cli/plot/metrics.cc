#include "cli/plot/metrics.h"

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

// False where the line makes no sense.
bool add_line(std::string_view line, RunMetrics& metrics) {
  const Json json = parse_json_line(line);
  if (json.is_null()) return false;
  const std::string type = text(json, "type");
  const double step = number(json, "step");
  if (type == "view") return true;  // it has no step
  if (type.empty() || !(step >= 0)) return false;
  if (type == "step") {
    metrics.steps.push_back({step, number(json, "loss")});
  } else if (type == "evaluation") {
    metrics.evaluations.push_back({step, number(json, "loss"), number(json, "accuracy")});
  } else if (type == "memberStep") {
    const std::string member = text(json, "member");
    if (member.empty()) return false;
    metrics.members[member].push_back({step, number(json, "stepMs")});
  }
  return true;
}

}  // namespace

RunMetrics parse_metrics(std::string_view text) {
  RunMetrics metrics;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (!line.empty() && !add_line(line, metrics)) ++metrics.skipped_lines;
  }
  return metrics;
}

}  // namespace paceline::cli
