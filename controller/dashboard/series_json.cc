// Numbers are written at once, without a tree of JSON values: a heat map has a hundred thousand of them.

#include "controller/dashboard/series_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "controller/dashboard/job_row.h"

namespace paceline::dashboard {

namespace {

using kube::Json;

void append_number(std::string& text, double value, int digits) {
  if (!std::isfinite(value)) {
    text += "null";
    return;
  }
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::general, digits);
  text.append(buffer.data(), end.ptr);
}

// [1,null,2]
template <typename Numbers>
void append_list(std::string& text, const Numbers& numbers, int digits) {
  text += '[';
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) text += ',';
    append_number(text, static_cast<double>(numbers[i]), digits);
  }
  text += ']';
}

void append_steps(std::string& text, std::string_view key, const std::vector<Step>& steps) {
  text += str_cat("\"", key, "\":[");
  for (std::size_t i = 0; i < steps.size(); ++i) text += str_cat(i > 0 ? "," : "", steps[i]);
  text += ']';
}

constexpr int kExact = 9, kShort = 4;  // digits: of what is compared with other places, and of colours
constexpr std::size_t kShortBytes = kShort + 2;  // with point and comma

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json evaluations_json(const std::vector<EvaluationPoint>& evaluations) {
  Json list = Json::array();
  for (const EvaluationPoint& each : evaluations) {
    Json item = {{"step", each.step},
                 {"loss", number_or_null(each.loss)},
                 {"accuracy", number_or_null(each.accuracy)},
                 {"seconds", number_or_null(each.seconds)}};
    if (each.auc) item["auc"] = number_or_null(*each.auc);
    list.push_back(std::move(item));
  }
  return list;
}

// The member of each row.
Json members_json(const JobSeries::HeatMap& map, const Json& members) {
  Json list = Json::array();
  for (std::size_t i = 0; i < map.members.size(); ++i) {
    Json item = {{"name", map.members[i]}};
    if (i < map.ranks) item["rank"] = i;
    if (members.is_array()) {
      const auto known = std::ranges::find(members, map.members[i], member_name);
      if (known != members.end()) {
        if (const std::string& host = kube::text_at(*known, {"host"}); !host.empty()) item["node"] = host;
        if (const std::string& pod = kube::text_at(*known, {"pod"}); !pod.empty()) item["pod"] = pod;
      }
    }
    list.push_back(std::move(item));
  }
  return list;
}

}  // namespace

std::string series_json(const JobSeries& series, std::size_t points, std::optional<double> samples_per_step) {
  const JobSeries::Points p = series.points(std::clamp<std::size_t>(points, 1, kMostPoints));
  std::string text = str_cat("{\"version\":\"", series.version(), "\",\"stepsPerPoint\":", p.width, ",");
  append_steps(text, "step", p.steps);
  const auto add = [&](std::string_view key, const std::vector<double>& numbers) {
    text += str_cat(",\"", key, "\":");
    append_list(text, numbers, kExact);
  };
  add("seconds", p.seconds);
  add("loss", p.loss);
  add("learningRate", p.learning_rate);
  add("stepsPerSecond", p.steps_per_second);
  if (samples_per_step) {
    std::vector<double> rates = p.steps_per_second;
    for (double& rate : rates) rate *= *samples_per_step;
    add("samplesPerSecond", rates);
  }
  text += str_cat(",\"evaluations\":", kube::dump(evaluations_json(series.evaluations())), "}");
  return text;
}

std::string heat_map_json(const JobSeries& series, Step from, Step to, std::size_t columns,
                          std::span<const std::string_view> parts, const Json& members) {
  const JobSeries::HeatMap map = series.heat_map(from, to, std::clamp<std::size_t>(columns, 1, kMostColumns));
  std::string text = str_cat("{\"version\":\"", series.version(), "\",\"stepsPerColumn\":", map.width, ",");
  append_steps(text, "steps", map.steps);
  text += str_cat(",\"members\":", kube::dump(members_json(map, members)), ",\"parts\":[");
  for (std::size_t i = 0; i < parts.size(); ++i) text += str_cat(i > 0 ? ",\"" : "\"", parts[i], "\"");
  text += "],\"values\":{";
  text.reserve(text.size() + parts.size() * map.members.size() * map.steps.size() * kShortBytes);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto part = static_cast<std::size_t>(std::ranges::find(kParts, parts[i]) - kParts.begin());
    text += str_cat(i > 0 ? ",\"" : "\"", parts[i], "\":[");
    for (std::size_t row = 0; row < map.members.size(); ++row) {
      if (row > 0) text += ',';
      append_list(text, std::span(map.ms[part]).subspan(row * map.steps.size(), map.steps.size()), kShort);
    }
    text += ']';
  }
  return text + "}}";
}

absl::StatusOr<std::vector<std::string_view>> parts_named(std::string_view names) {
  if (names.empty()) return std::vector<std::string_view>(kParts.begin(), kParts.end());
  std::array<bool, kParts.size()> wanted{};
  for (std::string_view rest = names;; rest.remove_prefix(1)) {
    const std::string_view name = rest.substr(0, rest.find(','));
    const auto part = std::ranges::find(kParts, name);
    if (part == kParts.end()) {
      std::string all;
      for (const std::string_view each : kParts) all += str_cat(all.empty() ? "" : ", ", each);
      return absl::InvalidArgumentError(str_cat("parts has \"", name, "\"; allowed: ", all));
    }
    wanted[static_cast<std::size_t>(part - kParts.begin())] = true;
    rest.remove_prefix(name.size());
    if (rest.empty()) break;
  }
  std::vector<std::string_view> parts;
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    if (wanted[i]) parts.push_back(kParts[i]);
  }
  return parts;
}

}  // namespace paceline::dashboard
