#include "controller/dashboard/series_record.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "base/status.h"
#include "controller/cluster/kube/json.h"

namespace paceline::dashboard {

namespace {

using kube::Json;

constexpr int kVersion = 1;

absl::Status not_ours() {
  return absl::DataLossError("these are not the bytes of a job's series");
}

// Numbers of each list, which are all as long as the first; empty: they are not.
template <typename Number>
std::vector<std::vector<Number>> columns_of(const Json& lists, std::size_t count) {
  std::vector<std::vector<Number>> columns;
  if (!lists.is_array() || lists.size() != count) return {};
  for (const Json& list : lists) {
    if (!list.is_array() || list.size() != lists[0].size()) return {};
    std::vector<Number>& column = columns.emplace_back();
    for (const Json& number : list) {
      if (!number.is_number()) return {};
      column.push_back(number.get<Number>());
    }
  }
  return columns;
}

// A step as a list has it; -1: it is none.
Step step_of(double number) {
  return number >= 0 && number <= static_cast<double>(kMostCount) ? static_cast<Step>(number) : -1;
}

// The middle of a column of so many steps, none of which is later than `newest`; -1: no step.
Step middle(double begin, Step width, Step newest) {
  const Step first = step_of(begin);
  if (first < 0 || newest < 0) return -1;
  return first >= newest ? newest : first + std::min((width - 1) / 2, newest - first);
}

// Refuses lists that are longer, and values that lie deeper, than those of a series, before it takes memory
// or stack for them.
class BoundedReader : public nlohmann::detail::json_sax_dom_parser<Json> {
  using Base = nlohmann::detail::json_sax_dom_parser<Json>;

 public:
  explicit BoundedReader(Json& json) : Base(json, false) {}
  bool start_object(std::size_t count) { return enter(count) && Base::start_object(count); }
  bool start_array(std::size_t count) { return enter(count) && Base::start_array(count); }
  bool end_object() { return --depth_, Base::end_object(); }
  bool end_array() { return --depth_, Base::end_array(); }

 private:
  static constexpr int kDepth = 4;
  static constexpr std::size_t kUnknown = static_cast<std::size_t>(-1);
  bool enter(std::size_t count) {
    return ++depth_ <= kDepth && (count == kUnknown || count <= kRecordedCells);
  }
  int depth_ = 0;
};

bool unpack_points(const Json& json, Step newest, JobSeries& series) {
  const Step width = kube::integer_at(json, {"width"});
  const auto lists = columns_of<double>(kube::at(json, {"points"}), 4);
  if (width < 1 || lists.empty() || lists[0].size() > kRecordedPoints) return false;
  for (std::size_t i = 0; i < lists[0].size(); ++i) {
    const StepPoint point{.step = middle(lists[0][i], width, newest),
                          .loss = lists[1][i],
                          .learning_rate = lists[2][i],
                          .seconds = lists[3][i]};
    if (point.step < 0) return false;
    series.add(point);
  }
  return true;
}

bool unpack_evaluations(const Json& json, JobSeries& series) {
  const auto lists = columns_of<double>(kube::at(json, {"evaluations"}), 5);
  if (lists.empty() || lists[0].size() > JobSeries::kEvaluations) return false;
  for (std::size_t i = 0; i < lists[0].size(); ++i) {
    EvaluationPoint point{.step = step_of(lists[0][i]),
                          .loss = lists[1][i],
                          .accuracy = lists[2][i],
                          .seconds = lists[3][i],
                          .auc = std::nullopt};
    if (!std::isnan(lists[4][i])) point.auc = lists[4][i];
    if (point.step < 0) return false;
    series.add(point);
  }
  return true;
}

bool unpack_members(const Json& json, Step newest, JobSeries& series) {
  const Json& map = kube::at(json, {"members"});
  const Step width = kube::integer_at(map, {"width"});
  const Json& names = kube::at(map, {"names"});
  const auto steps = columns_of<double>(kube::at(map, {"steps"}), 1);
  const auto parts = columns_of<float>(kube::at(map, {"ms"}), kParts.size());
  if (width < 1 || !names.is_array() || names.size() > JobSeries::kMembers || steps.empty() || parts.empty())
    return false;
  if (parts[0].size() != names.size() * steps[0].size() || parts[0].size() * kParts.size() > kRecordedCells)
    return false;
  std::vector<std::string> view;
  const auto ranks = static_cast<std::size_t>(std::max<std::int64_t>(kube::integer_at(map, {"ranks"}), 0));
  for (std::size_t row = 0; row < names.size(); ++row) {
    if (!names[row].is_string()) return false;
    MemberPoint point{.member = names[row].get<std::string>(), .step = 0, .ms = {}};
    if (row < ranks) view.push_back(point.member);
    for (std::size_t column = 0; column < steps[0].size(); ++column) {
      point.step = middle(steps[0][column], width, newest);
      if (point.step < 0) return false;
      for (std::size_t part = 0; part < kParts.size(); ++part)
        point.ms[part] = parts[part][row * steps[0].size() + column];
      if (!std::isnan(point.ms.back())) series.add(point);
    }
  }
  series.set_view(std::move(view));
  return true;
}

}  // namespace

std::string pack_series(const JobSeries& series) {
  const JobSeries::Points points = series.points(kRecordedPoints);
  Json json = {{"version", kVersion},
               {"newest", series.newest()},
               {"width", points.width},
               {"points", Json::array({points.steps, points.loss, points.learning_rate, points.seconds})}};
  std::vector<double> lists[5];
  for (const EvaluationPoint& each : series.evaluations()) {
    lists[0].push_back(static_cast<double>(each.step));
    lists[1].push_back(each.loss);
    lists[2].push_back(each.accuracy);
    lists[3].push_back(each.seconds);
    lists[4].push_back(each.auc.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  json["evaluations"] = lists;
  const std::size_t members = std::max<std::size_t>(series.members(), 1);
  const std::size_t columns =
      std::clamp<std::size_t>(kRecordedCells / (members * kParts.size()), 1, kRecordedColumns);
  const JobSeries::HeatMap map = series.heat_map(0, series.newest(), columns);
  json["members"] = {{"width", map.width},
                     {"names", map.members},
                     {"ranks", map.ranks},
                     {"steps", Json::array({map.steps})},
                     {"ms", map.ms}};
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

absl::StatusOr<JobSeries> unpack_series(std::string_view bytes) {
  Json json;
  BoundedReader reader(json);
  if (!Json::sax_parse(bytes.begin(), bytes.end(), &reader, Json::input_format_t::cbor)) return not_ours();
  if (kube::integer_at(json, {"version"}) != kVersion) return not_ours();
  JobSeries series;
  const Step newest = kube::integer_at(json, {"newest"});
  const bool whole = unpack_points(json, newest, series) && unpack_evaluations(json, series) &&
                     unpack_members(json, newest, series);
  if (!whole) return not_ours();
  return series;
}

}  // namespace paceline::dashboard
