#include "controller/dashboard/job_questions.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text.h"
#include "controller/cluster/kube/times.h"
#include "controller/dashboard/answers.h"
#include "controller/dashboard/job_history.h"
#include "controller/dashboard/job_row.h"
#include "controller/dashboard/next_steps.h"
#include "controller/dashboard/past_job.h"
#include "controller/dashboard/series_json.h"
#include "controller/dashboard/timeline.h"
#include "controller/jobs/event_view.h"
#include "controller/plan/pods.h"

namespace paceline::dashboard {

namespace {

using kube::Json;
using web::HttpAnswer;

constexpr Step kEnd = std::numeric_limits<Step>::max();

// A whole number of the query; `otherwise` where it is missing.
struct Range {
  std::int64_t least = 0, most = kEnd;
};
absl::StatusOr<std::int64_t> number(const web::HttpRequest& request, std::string_view name,
                                    std::int64_t otherwise, const Range& range) {
  const std::string& text = request.parameter(name);
  if (text.empty()) return otherwise;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= range.least && value <= range.most) return value;
  const std::string most = range.most == kEnd ? "" : str_cat(" to ", range.most);
  return absl::InvalidArgumentError(
      str_cat(name, "=", text, ": allowed is a whole number from ", range.least, most));
}

// The question in words that no other one has: parameters stand in the order of their names.
std::string target(const web::HttpRequest& request) {
  std::string text = request.path;
  for (const auto& [name, value] : request.query) text += str_cat("\n", name, "=", value);
  return text;
}

std::string role_index(const kube::SlimPod& pod) {
  return str_cat(role_name(pod.role), "-", pod.index);
}

// A later pod has this one's place, by what the job's status says.
bool is_replaced(const kube::SlimPod& pod, const Json& object) {
  for (const Json& member : kube::list_at(object, {"status", "members"})) {
    if (member_name(member) != role_index(pod)) continue;
    const auto present = plan::attempt_in(kube::text_at(member, {"pod"}));
    return present && *present > pod.attempt;
  }
  return false;
}

// The events of this job, and not of another one of its name: of a deleted job there are none any more.
absl::StatusOr<std::vector<jobs::EventView>> events_of(Place& place, const Call& call) {
  if (call.past) return std::vector<jobs::EventView>();
  const Json& object = *call.object;
  PL_ASSIGN_OR_RETURN(const auto source, place.source(call.viewer));
  PL_ASSIGN_OR_RETURN(jobs::JobSource::Events events,
                      source->events(kube::text_at(object, {"metadata", "namespace"}),
                                     kube::text_at(object, {"metadata", "name"})));
  jobs::drop_earlier(events.events,
                     kube::parse_time(kube::text_at(object, {"metadata", "creationTimestamp"})));
  return std::move(events.events);
}

// The pods whose logs may be there, likewise.
absl::StatusOr<std::vector<kube::SlimPod>> pods_of(jobs::JobSource& source, const Call& call) {
  if (call.past) return std::vector<kube::SlimPod>();
  return source.logged_pods(call.path.at("ns"), call.path.at("name"));
}

absl::StatusOr<kube::SlimPod> pod_named(jobs::JobSource& source, const Call& call) {
  const std::string& name = call.path.at("pod");
  PL_ASSIGN_OR_RETURN(const std::vector<kube::SlimPod> pods, pods_of(source, call));
  const auto found = std::ranges::find(pods, name, &kube::SlimPod::name);
  if (found != pods.end()) return *found;
  return absl::NotFoundError(str_cat("no pod named ", name, " has logged"));
}

// One namespace of those that a viewer sees; empty: all.
Namespaces seen_of(const Namespaces& seen, const std::string& ns) {
  if (ns.empty()) return seen;
  std::set<std::string> one;
  if (seen == nullptr || seen->contains(ns)) one.insert(ns);
  return std::make_shared<const std::set<std::string>>(std::move(one));
}

}  // namespace

void JobQuestions::post(Workers& workers, Call call, Task task) {
  const auto answer = call.answer;
  const std::string lane = lane_of(call);
  const bool taken = workers.post(
      [call = std::move(call), task = std::move(task)](const std::stop_token& stop) {
        absl::StatusOr<HttpAnswer> result = task(call, stop);
        call.answer(result.ok() ? *std::move(result) : error_answer(result.status()));
      },
      lane);
  if (!taken) answer(error_answer(absl::ResourceExhaustedError("too many requests wait; ask again later")));
}

absl::StatusOr<HttpAnswer> JobQuestions::shared(const Call& of, const SeriesText& make) {
  SharedTexts::Source source{of.object, board_.series_of(of.key)};
  const bool is_followed = of.past == nullptr && source.series.newest >= 0;
  const std::string asked = target(of.request);
  if (is_followed) {
    if (const auto text = texts_.find(asked, source)) return json_answer(*text);
  }
  std::string json;
  PL_RETURN_IF_ERROR(place_.use_series(*of.object, [&](const JobSeries& series) { json = make(series); }));
  if (is_followed) texts_.keep(asked, std::move(source), std::make_shared<const std::string>(json));
  return json_answer(std::move(json));
}

void JobQuestions::series(Call call) {
  work(std::move(call), [this](const Call& of, const std::stop_token&) -> absl::StatusOr<HttpAnswer> {
    PL_ASSIGN_OR_RETURN(const std::int64_t points, number(of.request, "points", 1000, {1, kMostPoints}));
    return shared(of, [&](const JobSeries& series) {
      return series_json(series, static_cast<std::size_t>(points), samples_per_step(*of.object));
    });
  });
}

void JobQuestions::heat_map(Call call) {
  work(std::move(call), [this](const Call& of, const std::stop_token&) -> absl::StatusOr<HttpAnswer> {
    PL_ASSIGN_OR_RETURN(const Step from, number(of.request, "from", 0, {}));
    PL_ASSIGN_OR_RETURN(const Step to, number(of.request, "to", kEnd, {from}));
    PL_ASSIGN_OR_RETURN(const std::int64_t columns, number(of.request, "columns", 400, {1, kMostColumns}));
    PL_ASSIGN_OR_RETURN(const auto parts, parts_named(of.request.parameter("parts")));
    return shared(of, [&](const JobSeries& series) {
      return heat_map_json(series, from, to, static_cast<std::size_t>(columns), parts,
                           kube::at(*of.object, {"status", "members"}));
    });
  });
}

void JobQuestions::timeline(Call call) {
  ask(std::move(call), [this](const Call& of, const std::stop_token&) -> absl::StatusOr<HttpAnswer> {
    auto events = events_of(place_, of);
    // The status alone tells of much.
    if (absl::IsPermissionDenied(events.status())) events = std::vector<jobs::EventView>();
    PL_RETURN_IF_ERROR(events.status());
    std::vector<EvaluationPoint> evaluations;
    // The events are told, too, where the series can't be read.
    place_.use_series(*of.object, [&](const JobSeries& series) { evaluations = series.evaluations(); })
        .IgnoreError();
    return json_answer(kube::dump(timeline_json(*of.object, *events, evaluations)));
  });
}

void JobQuestions::events(Call call) {
  ask(std::move(call), [this](const Call& of, const std::stop_token&) -> absl::StatusOr<HttpAnswer> {
    PL_ASSIGN_OR_RETURN(const auto events, events_of(place_, of));
    return json_answer(kube::dump(events_json(events)));
  });
}

void JobQuestions::logs(Call call) {
  ask(std::move(call), [this](const Call& of, const std::stop_token&) -> absl::StatusOr<HttpAnswer> {
    PL_ASSIGN_OR_RETURN(const auto source, place_.source(of.viewer));
    PL_ASSIGN_OR_RETURN(const std::vector<kube::SlimPod> pods, pods_of(*source, of));
    Json logs = Json::array();
    for (const kube::SlimPod& pod : pods) {
      // The newest of each place is written to while the job goes on.
      const bool newest = std::ranges::none_of(pods, [&](const kube::SlimPod& each) {
        return each.role == pod.role && each.index == pod.index && each.attempt > pod.attempt;
      });
      Json item = {{"pod", pod.name()},
                   {"member", role_index(pod)},
                   {"role", role_name(pod.role)},
                   {"index", pod.index},
                   {"attempt", pod.attempt},
                   {"containers", Json::array({pod.trainer.empty() ? "trainer" : pod.trainer})},
                   {"live", newest && !has_ended(*of.object)}};
      if (!pod.node.empty()) item["node"] = pod.node;
      logs.push_back(std::move(item));
    }
    return json_answer(kube::dump({{"logs", std::move(logs)}}));
  });
}

void JobQuestions::log(Call call) {
  ask(std::move(call), [this](const Call& of, const std::stop_token& stop) -> absl::StatusOr<HttpAnswer> {
    PL_ASSIGN_OR_RETURN(const std::int64_t tail, number(of.request, "tail", 1000, {0, kMostLogLines}));
    PL_ASSIGN_OR_RETURN(const auto source, place_.source(of.viewer));
    PL_ASSIGN_OR_RETURN(const kube::SlimPod pod, pod_named(*source, of));
    std::string text;
    bool cut = false;
    const jobs::LogSink sink{[&](std::string_view bytes) {
                               text.append(bytes);
                               cut |= text.size() > kMostLogBytes;
                               if (text.size() > 2 * kMostLogBytes)
                                 text.erase(0, text.size() - kMostLogBytes);
                               return true;
                             },
                             [](const std::string&) {}};
    PL_RETURN_IF_ERROR(source->read_log(
        pod, {.container = of.request.parameter("container"), .tail = static_cast<int>(tail)}, sink, stop));
    if (text.size() > kMostLogBytes) text.erase(0, text.size() - kMostLogBytes);
    if (cut) text.erase(0, text.find('\n') + 1);  // the rest of a line
    text.shrink_to_fit();                         // it may wait for a slow reader
    return HttpAnswer{200, std::move(text)};
  });
}

void JobQuestions::follow_log(Call call) {
  ask(std::move(call), [this](const Call& of, const std::stop_token&) -> absl::StatusOr<HttpAnswer> {
    PL_ASSIGN_OR_RETURN(const std::int64_t tail, number(of.request, "tail", 200, {0, kMostLogLines}));
    PL_ASSIGN_OR_RETURN(std::shared_ptr<jobs::JobSource> source, place_.source(of.viewer));
    PL_ASSIGN_OR_RETURN(const kube::SlimPod pod, pod_named(*source, of));
    jobs::LogRequest request{.container = of.request.parameter("container"),
                             .tail = static_cast<int>(tail),
                             .follow = true,
                             .over = [this, key = of.key, pod] {
                               const auto object = board_.object(key);
                               return object == nullptr || has_ended(*object) || is_replaced(pod, *object);
                             }};
    auto stream = followers_.start(
        of.viewer.user,
        [source = std::move(source), pod, request = std::move(request)](const LogFollowers::Sink& sink,
                                                                        const std::stop_token& stop) {
          return source->read_log(pod, request, {sink, [](const std::string&) {}}, stop);
        },
        of.sight);
    if (stream == nullptr)
      return absl::ResourceExhaustedError(
          str_cat("so many logs are followed already, ", LogFollowers::kMostOfOne, " by one viewer at most"));
    return HttpAnswer{.content_type = "text/event-stream", .stream = std::move(stream)};
  });
}

void JobQuestions::yaml(Call call) {
  work(std::move(call), [this](const Call& of, const std::stop_token&) -> absl::StatusOr<HttpAnswer> {
    PL_ASSIGN_OR_RETURN(std::string text, place_.yaml(*of.object));
    return HttpAnswer{.body = std::move(text), .content_type = "text/yaml; charset=utf-8"};
  });
}

void JobQuestions::next(Call call) {
  work(std::move(call), [this](const Call& of, const std::stop_token&) -> absl::StatusOr<HttpAnswer> {
    if (of.past) return json_answer(kube::dump({{"decisions", Json::array()}}));
    return json_answer(kube::dump(next_steps_json(*of.object, clock_.wall_now())));
  });
}

void JobQuestions::past(Call call) {
  work(std::move(call), [this](const Call& of, const std::stop_token&) -> absl::StatusOr<HttpAnswer> {
    JobHistory* const history = place_.history();
    if (history == nullptr)
      return absl::UnavailableError("no history is kept here: config.dashboard.history of the controller");
    PL_ASSIGN_OR_RETURN(const std::int64_t asked, number(of.request, "limit", kMostPast, {0, kMostPast}));
    const auto limit = static_cast<std::size_t>(asked);
    const Namespaces seen = seen_of(namespaces_of(of), of.request.parameter("namespace"));
    PL_ASSIGN_OR_RETURN(std::vector<history::Record> records, history->deleted(seen.get(), limit + 1));
    bool more = records.size() > limit;
    if (more) records.resize(limit);
    const bool whole = of.request.parameter("objects") == "1";
    std::string jobs;  // one by one: as text they take less memory
    const auto add = [&](const Json& job) { jobs += str_cat(jobs.empty() ? "" : ",", kube::dump(job)); };
    std::size_t bytes = 0;
    for (const history::Record& record : records) {
      if (!whole) {
        add(past_row(record));
        continue;
      }
      auto found = history->find_deleted(record.ns, record.name, record.uid);
      if (!found.ok()) continue;  // it has gone meanwhile
      bytes += found->object.size();
      more |= bytes > kMostObjectBytes;
      if (bytes > kMostObjectBytes) break;
      add(past_object(*found));
    }
    return json_answer(str_cat("{\"jobs\":[", jobs, "],\"more\":", more ? "true" : "false", "}"));
  });
}

void JobQuestions::find_past(Call call, std::function<void(Call)> then) {
  const auto answer = call.answer;
  const std::string lane = lane_of(call);
  const bool taken = workers_.post(
      [this, call = std::move(call), then = std::move(then)](const std::stop_token&) mutable {
        const std::string& uid = call.path["uid"];
        auto found = place_.history()->find_deleted(call.path.at("ns"), call.path.at("name"), uid);
        if (found.ok()) {
          call.object = std::make_shared<const Json>(past_object(*found));
          call.past = std::make_shared<const history::Record>(*std::move(found));
        } else if (!absl::IsNotFound(found.status()) && !uid.empty()) {
          return call.answer(error_answer(found.status()));
        }
        then(std::move(call));
      },
      lane);
  if (!taken) answer(error_answer(absl::ResourceExhaustedError("too many requests wait; ask again later")));
}

}  // namespace paceline::dashboard
