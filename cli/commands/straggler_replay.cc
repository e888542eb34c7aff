#include "cli/commands/straggler_replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/pluralize.h"
#include "base/text.h"
#include "cli/plot/json_line.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

namespace {

using Json = nlohmann::json;
using stragglers::Finding;
using stragglers::FindingKind;

Duration milliseconds(const Json& line, const char* field) {
  const auto found = line.find(field);
  if (found == line.end() || !found->is_number()) return {};
  constexpr double kDay = 86'400'000, kNanoseconds = 1e6;
  return Duration(std::llround(std::clamp(found->get<double>(), 0.0, kDay) * kNanoseconds));
}

// The type of a line that is one.
std::string_view type_of(const Json& line) {
  const auto type = line.find("type");
  if (type == line.end() || !type->is_string()) return {};
  return type->get_ref<const std::string&>();
}

std::optional<RecordedStep> step_of(const Json& line) {
  if (type_of(line) != "memberStep") return std::nullopt;
  const auto member = line.find("member"), step = line.find("step");
  if (member == line.end() || !member->is_string() || step == line.end() || !step->is_number_integer())
    return std::nullopt;
  return RecordedStep{.member = *member,
                      .sample = {.step = *step,
                                 .input = milliseconds(line, "inputMs"),
                                 .compute = milliseconds(line, "computeMs") + milliseconds(line, "leftOutMs"),
                                 .update = milliseconds(line, "updateMs"),
                                 .wait = milliseconds(line, "waitMs"),
                                 .transfer = milliseconds(line, "transferMs"),
                                 .checkpoint = milliseconds(line, "checkpointMs")}};
}

template <typename Use>
void each_line(std::string_view metrics, Use use) {
  while (!metrics.empty()) {
    const std::size_t end = std::min(metrics.find('\n'), metrics.size());
    use(parse_json_line(metrics.substr(0, end)));
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
  }
}

class Player {
 public:
  void play(const Json& line) {
    if (type_of(line) == "view") begin_view(line);
    if (const auto told = step_of(line)) add(*told);
  }

  Replay end() {
    for (const stragglers::Standing& standing : detector_.standings())
      replay_.members.push_back({names_[static_cast<std::size_t>(standing.place)], standing});
    replay_.knows = detector_.knows();
    return std::move(replay_);
  }

 private:
  int place_of(const std::string& name) {
    const auto known = std::ranges::find(names_, name);
    if (known != names_.end()) return static_cast<int>(known - names_.begin());
    names_.push_back(name);
    return static_cast<int>(names_.size()) - 1;
  }

  void begin_view(const Json& line) {
    const auto members = line.find("members");
    if (members == line.end() || !members->is_array()) return;
    std::vector<int> places;
    for (const Json& each : *members) {
      if (each.is_string() && !each.get_ref<const std::string&>().starts_with("ps-"))
        places.push_back(place_of(each));
    }
    begin(places);
  }

  void begin(const std::vector<int>& places) {
    ranks_.clear();
    for (std::size_t rank = 0; rank < places.size(); ++rank) ranks_[places[rank]] = static_cast<int>(rank);
    detector_.begin_view(places);
    begun_ = true;
  }

  void add(const RecordedStep& told) {
    const stragglers::StepSample& sample = told.sample;
    if (replay_.first == 0) replay_.first = sample.step;
    replay_.last = std::max(replay_.last, sample.step);
    const int place = place_of(told.member);
    if (!begun_ && !early_.contains(place)) return (void)(early_[place] = sample);
    if (!begun_) {
      std::vector<int> places;
      for (const auto& [each, _] : early_) places.push_back(each);
      begin(places);
    }
    const auto rank = ranks_.find(place);
    if (rank == ranks_.end()) return;
    detector_.add(rank->second, sample);
    if (detector_.advance()) note();
  }

  static bool is_same(const Finding& a, const Finding& b) { return a.kind == b.kind && a.place == b.place; }

  void note() {
    const auto missing_in = [](const std::vector<Finding>& all, const Finding& one) {
      return std::ranges::none_of(all, [&](const Finding& each) { return is_same(each, one); });
    };
    for (const Finding& each : found_) {
      if (missing_in(detector_.findings(), each)) record(each, false);
    }
    for (const Finding& each : detector_.findings()) {
      if (missing_in(found_, each)) record(each, true);
    }
    found_ = detector_.findings();
  }

  void record(const Finding& finding, bool found) {
    const std::string name = finding.place < 0 ? "" : names_[static_cast<std::size_t>(finding.place)];
    replay_.events.push_back({replay_.last, name, finding, found});
  }

  stragglers::Detector detector_{stragglers::Settings{}};
  std::vector<std::string> names_;  // by place
  std::map<int, int> ranks_;        // by place
  std::map<int, stragglers::StepSample> early_;
  bool begun_ = false;
  std::vector<Finding> found_;
  Replay replay_;
};

std::string event_line(const Replay::Event& event) {
  const Finding& finding = event.finding;
  const std::string who = !event.member.empty()  ? event.member
                          : finding.members == 0 ? "all members"
                                                 : pluralize(finding.members, "member", "members");
  const std::string text =
      str_cat("  step ", event.step, ": ", who, ": ", stragglers::kind_name(finding.kind));
  if (!event.found) return str_cat(text, " no more");
  return str_cat(text, ", ", fixed(finding.factor, 2), "x for ", pluralize(finding.steps, "step", "steps"),
                 " (", format_duration(finding.own), " of ", format_duration(finding.typical), ") in ",
                 stragglers::part_name(finding.part));
}

}  // namespace

std::vector<RecordedStep> recorded_steps(std::string_view metrics) {
  std::vector<RecordedStep> steps;
  each_line(metrics, [&](const Json& line) {
    if (auto told = step_of(line)) steps.push_back(*std::move(told));
  });
  return steps;
}

Replay replay_stragglers(std::string_view metrics) {
  Player player;
  each_line(metrics, [&](const Json& line) { player.play(line); });
  return player.end();
}

std::vector<std::string> replay_lines(const Replay& replay) {
  if (replay.last == 0) return {"Stragglers: no steps are recorded"};
  std::vector<std::string> lines = {
      str_cat("Stragglers, by the steps ", replay.first, " to ", replay.last, " that are recorded:")};
  if (!replay.knows) lines.emplace_back("  too few steps for anybody to be found");
  for (const Replay::Event& event : replay.events) lines.push_back(event_line(event));
  if (replay.knows && replay.events.empty()) lines.emplace_back("  none was found");
  std::vector<std::vector<std::string>> rows = {{"MEMBER", "RATIO", "EVIDENCE", "EXCESS", "FOUND"}};
  constexpr double kPercent = 100;
  for (const Replay::Member& each : replay.members) {
    rows.push_back({each.name, fixed(each.standing.ratio, 2) + "x",
                    str_cat(std::llround(each.standing.evidence * kPercent), " %"),
                    format_duration(each.standing.excess), each.standing.found ? "yes" : "no"});
  }
  for (const std::string& line : align_table(rows, {false, true, true, true, false}))
    lines.push_back(str_cat("  ", line));
  lines.emplace_back(
      "  RATIO: its own time over the others' median, of late. EVIDENCE: of what it takes to be found. "
      "EXCESS: of a step.");
  return lines;
}

}  // namespace paceline::cli
