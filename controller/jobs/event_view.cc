#include "controller/jobs/event_view.h"

#include <algorithm>
#include <charconv>

#include "base/ids.h"
#include "base/text.h"
#include "controller/cluster/kube/times.h"

namespace paceline::jobs {

namespace {

using kube::Json;

constexpr std::size_t kMaxMessageBytes = 2000;

// "-12": takes it off the end.
bool take_number(std::string_view& text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos || dash + 1 == text.size()) return false;
  if (text.find_first_not_of("0123456789", dash + 1) != std::string_view::npos) return false;
  text = text.substr(0, dash);
  return true;
}

// <job>-<role>-<index>-<attempt>
bool is_pod_of(std::string_view pod, std::string_view job) {
  if (!take_number(pod) || !take_number(pod)) return false;
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    const std::string suffix = str_cat("-", role_name(role));
    if (!pod.ends_with(suffix)) continue;
    return job.empty() || pod.substr(0, pod.size() - suffix.size()) == job;
  }
  return false;
}

std::optional<WallTime> last_seen(const Json& object) {
  for (const auto& keys : {std::initializer_list<std::string_view>{"series", "lastObservedTime"},
                           {"lastTimestamp"},
                           {"eventTime"},
                           {"firstTimestamp"},
                           {"metadata", "creationTimestamp"}}) {
    if (auto time = kube::parse_time(kube::text_at(object, keys))) return time;
  }
  return std::nullopt;
}

WallTime time_of(const EventView& event) {
  return event.last.value_or(WallTime());
}

}  // namespace

EventView read_event(const Json& object) {
  EventView event;
  event.key = str_cat(kube::text_at(object, {"metadata", "namespace"}), "/",
                      kube::text_at(object, {"metadata", "name"}));
  event.resource_version = kube::text_at(object, {"metadata", "resourceVersion"});
  event.last = last_seen(object);
  event.count = std::max(
      {std::int64_t{1}, kube::integer_at(object, {"count"}), kube::integer_at(object, {"series", "count"})});
  event.warning = kube::text_at(object, {"type"}) == "Warning";
  event.reason = kube::sanitize_line(kube::text_at(object, {"reason"}), 128);
  const std::string& kind = kube::text_at(object, {"involvedObject", "kind"});
  event.object = str_cat(kind == kube::kTrainingJobs.kind ? "tj" : "pod", "/",
                         kube::sanitize_line(kube::text_at(object, {"involvedObject", "name"}), 256));
  event.message = kube::sanitize_line(kube::text_at(object, {"message"}), kMaxMessageBytes);
  return event;
}

bool is_about(const Json& event, std::string_view job) {
  const std::string& kind = kube::text_at(event, {"involvedObject", "kind"});
  const std::string& name = kube::text_at(event, {"involvedObject", "name"});
  if (kind == kube::kTrainingJobs.kind) return job.empty() || name == job;
  return kind == kube::kPods.kind && is_pod_of(name, job);
}

void drop_earlier(std::vector<EventView>& events, std::optional<WallTime> created) {
  std::erase_if(events,
                [&](const EventView& event) { return event.last && created && *event.last < *created; });
}

void keep_newest(std::vector<EventView>& events, std::size_t most) {
  if (events.size() <= most) return;
  const auto kept = events.begin() + static_cast<std::ptrdiff_t>(most);
  std::ranges::nth_element(events, kept, std::ranges::greater(), time_of);
  events.erase(kept, events.end());
}

void sort_events(std::vector<EventView>& events) {
  std::ranges::stable_sort(events, {}, time_of);
}

}  // namespace paceline::jobs
