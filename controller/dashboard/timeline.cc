#include "controller/dashboard/timeline.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "controller/cluster/kube/times.h"
#include "controller/dashboard/job_row.h"

namespace paceline::dashboard {

namespace {

using kube::Json;

// The kind of an event of the job, by its reason. All others are its phases, or (Note) what keeps it from
// one.
struct Kind {
  std::string_view reason, kind;
};
constexpr std::array kKinds = {
    Kind{"ViewChanged", "View"},
    Kind{"TooFewMembers", "View"},
    Kind{"Resized", "View"},
    Kind{"MemberLost", "Lost"},
    Kind{"MemberReplaced", "Restart"},
    Kind{"Restarting", "Restart"},
    Kind{"StragglerDetected", "Straggler"},
    Kind{"StragglerCleared", "Straggler"},
    Kind{"StragglerReplacing", "Replacement"},
    Kind{"StragglerReplaced", "Replacement"},
    Kind{"StragglerKept", "Replacement"},
    Kind{"StragglerAsSlow", "Replacement"},
    Kind{"StragglerRebalanced", "Rebalance"},
    Kind{"PreflightPassed", "Preflight"},
    Kind{"PreflightFailed", "Preflight"},
    Kind{"MemberReplacing", "Replacement"},
    Kind{"MemberHandedOver", "Replacement"},
    Kind{"MemberKept", "Replacement"},
    Kind{"ReplacementOver", "Replacement"},
    Kind{"ReplacementRefused", "Replacement"},
    Kind{"CheckpointSaved", "Checkpoint"},
    Kind{"CheckpointNotSaved", "Checkpoint"},
    Kind{"CheckpointRefused", "Checkpoint"},
    Kind{"CheckpointsNotKept", "Checkpoint"},
};

// Events of kind Phase begin a phase. (The end's is the object's; a reason to start again is a phase by
// itself.)
struct Begun {
  std::string_view reason, phase;
};
constexpr std::array kBegun = {
    Begun{"CreatingPods", "Starting"}, Begun{"Resumed", "Starting"},    Begun{"MembersTrain", "Running"},
    Begun{"PodsRun", "Running"},       Begun{"Suspended", "Suspended"},
};

std::string begun_phase(std::string_view reason, const Json& object) {
  const auto found = std::ranges::find(kBegun, reason, &Begun::reason);
  if (found != kBegun.end()) return std::string(found->phase);
  const bool is_end = has_ended(object) && reason == kube::text_at(object, {"status", "reason"});
  return is_end ? phase_of(object) : "";
}

// Kubelets and the scheduler speak of pods.
std::string_view kind_of(const jobs::EventView& event, const Json& object) {
  if (event.object.starts_with("pod/")) return "Pod";
  const auto found = std::ranges::find(kKinds, event.reason, &Kind::reason);
  if (found != kKinds.end()) return found->kind;
  return begun_phase(event.reason, object).empty() ? "Note" : "Phase";
}

double seconds_between(WallTime from, WallTime to) {
  return std::chrono::duration<double>(to - from).count();
}

std::optional<WallTime> time_at(const Json& json, std::string_view key) {
  return kube::parse_time(kube::text_at(json, {key}));
}

// Times of events are whole seconds on a cluster.
constexpr double kSameMoment = 2;

bool is_at(const Json& item, std::optional<WallTime> begin, std::optional<WallTime> time) {
  if (!begin || !time || !item.contains("seconds")) return false;
  return std::abs(item["seconds"].get<double>() - seconds_between(*begin, *time)) <= kSameMoment;
}

// The figures that the status has of the newest view and of slow members.
void add_figures(const Json& object, std::optional<WallTime> begin, Json& items) {
  const Json& change = kube::at(object, {"status", "view", "change"});
  bool newest = true;
  for (auto item = items.rbegin(); item != items.rend(); ++item) {
    const std::string reason = kube::text_at(*item, {"title"});
    if (reason == "ViewChanged" && std::exchange(newest, false) && change.is_object()) {
      (*item)["step"] = kube::integer_at(change, {"step"});
      for (const char* const key : {"came", "left"}) {
        for (const Json& member : kube::list_at(change, {key})) (*item)["members"].push_back(member);
      }
    }
    if (reason == "StragglerDetected") {
      for (const Json& each : kube::list_at(object, {"status", "stragglers"})) {
        if (!is_at(*item, begin, time_at(each, "since"))) continue;
        (*item)["step"] = kube::integer_at(each, {"sinceStep"});
        if (each.contains("role")) (*item)["members"].push_back(member_name(each));
      }
    }
    if (reason == "StragglerReplacing" || reason == "MemberReplacing") {
      for (const Json& each : kube::list_at(object, {"status", "stragglerReplacements"})) {
        if (!is_at(*item, begin, time_at(each, "at"))) continue;
        (*item)["members"].push_back(member_name(each));
        const auto ended = time_at(each, "ended");
        if (ended && begin) (*item)["endSeconds"] = seconds_between(*begin, *ended);
      }
    }
  }
}

// Numbers are as the page writes them: dashboard/src/format/numbers.ts.
std::string figure(const char* name, double value, double scale, const char* format) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), format, value * scale);
  return str_cat(name, " ", text.data());
}

Json evaluation_item(const EvaluationPoint& each) {
  const double size = std::abs(each.loss);
  const bool plain = each.loss == 0 || (size >= 1e-3 && size < 1e6);
  std::vector<std::string> figures;
  if (std::isfinite(each.loss)) figures.push_back(figure("loss", each.loss, 1, plain ? "%.4f" : "%.3e"));
  if (std::isfinite(each.accuracy)) figures.push_back(figure("accuracy", each.accuracy, 100, "%.2f %%"));
  if (each.auc && std::isfinite(*each.auc)) figures.push_back(figure("AUC", *each.auc, 1, "%.4f"));
  std::string text;
  for (const std::string& each_figure : figures) text += str_cat(text.empty() ? "" : ", ", each_figure);
  Json item = {{"step", each.step},
               {"kind", "Evaluation"},
               {"severity", "Info"},
               {"title", "Evaluation"},
               {"text", text}};
  if (std::isfinite(each.seconds)) item["seconds"] = each.seconds;
  return item;
}

}  // namespace

Json events_json(const std::vector<jobs::EventView>& events) {
  Json list = Json::array();
  for (const jobs::EventView& event : events) {
    Json item = {{"type", event.warning ? "Warning" : "Normal"},
                 {"reason", event.reason},
                 {"object", event.object},
                 {"message", event.message},
                 {"count", event.count}};
    if (event.last) item["time"] = format_wall_time(*event.last);
    list.push_back(std::move(item));
  }
  return {{"events", std::move(list)}};
}

Json timeline_json(const Json& object, const std::vector<jobs::EventView>& events,
                   const std::vector<EvaluationPoint>& evaluations) {
  const auto begin = time_at(kube::at(object, {"metadata"}), "creationTimestamp");
  Json items = Json::array();
  const std::size_t skipped = events.size() - std::min(events.size(), kMostItems);
  for (std::size_t i = skipped; i < events.size(); ++i) {
    const jobs::EventView& event = events[i];
    Json item = {{"kind", kind_of(event, object)},
                 {"severity", event.warning ? (event.reason == "Failed" ? "Error" : "Warning") : "Info"},
                 {"title", event.reason},
                 {"text", event.message}};
    if (item["kind"] == "Phase") {
      if (std::string phase = begun_phase(event.reason, object); !phase.empty())
        item["phase"] = std::move(phase);
    }
    if (event.last) item["time"] = format_wall_time(*event.last);
    if (event.last && begin) item["seconds"] = seconds_between(*begin, *event.last);
    items.push_back(std::move(item));
  }
  add_figures(object, begin, items);
  const std::size_t left = evaluations.size() - std::min(evaluations.size(), kMostItems);
  for (std::size_t i = left; i < evaluations.size(); ++i) items.push_back(evaluation_item(evaluations[i]));
  std::stable_sort(items.begin(), items.end(), [](const Json& a, const Json& b) {
    return kube::number_at(a, {"seconds"}).value_or(0) < kube::number_at(b, {"seconds"}).value_or(0);
  });
  return {{"items", std::move(items)}};
}

}  // namespace paceline::dashboard
