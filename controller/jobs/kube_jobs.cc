#include "controller/jobs/kube_jobs.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "controller/cluster/kube/api_error.h"
#include "controller/jobs/event_view.h"
#include "controller/jobs/pod_log.h"

namespace paceline::jobs {

namespace {

using kube::Json;

constexpr int kPageSize = 500;
constexpr int kListTries = 3;  // of a list whose pages are too old to go on with
constexpr std::size_t kNamesShown = 10;

std::string ns_text(const std::string& ns) {
  return ns.empty() ? "all namespaces" : str_cat("namespace ", ns);
}

}  // namespace

std::string job_text(const std::string& ns, const std::string& name) {
  return str_cat(ns, "/", name);
}

Json printable(Json object) {
  if (!object.contains("apiVersion")) object["apiVersion"] = kube::kTrainingJobs.api_version;
  if (!object.contains("kind")) object["kind"] = kube::kTrainingJobs.kind;
  if (object.contains("metadata") && object["metadata"].is_object())
    object["metadata"].erase("managedFields");
  return object;
}

absl::StatusOr<std::string> KubeJobs::list(const kube::Scope& scope, const Asked& asked,
                                           const TakePage& take) {
  for (int attempt = 1;; ++attempt) {
    std::size_t listed = 0;
    std::string token, version;
    absl::Status status;
    do {
      const bool first = token.empty();
      auto page = api_.list(scope, kPageSize, token, stop_);
      status = page.status();
      if (!status.ok()) break;
      listed += page->items.size();
      take(std::move(page->items), first);
      token = page->continue_token;
      version = page->resource_version;
      if (listed > kMaxListed)
        return absl::ResourceExhaustedError(
            str_cat("can't ", asked.what, ": more than ", kMaxListed, " of them"));
    } while (!token.empty());
    if (status.ok()) return version;
    if (!absl::IsOutOfRange(status) || attempt == kListTries) return plain(status, asked);
  }
}

absl::StatusOr<KubeJobs::Listed> KubeJobs::list_jobs(const std::string& ns) {
  Listed listed;
  PL_ASSIGN_OR_RETURN(listed.resource_version,
                      list({kube::kTrainingJobs, ns, ""},
                           {.what = str_cat("list the jobs of ", ns_text(ns)), .verb = "list", .ns = ns},
                           [&](std::vector<Json> page, bool first) {
                             if (first) listed.objects.clear();
                             std::ranges::move(page, std::back_inserter(listed.objects));
                           }));
  return listed;
}

absl::StatusOr<Json> KubeJobs::job(const std::string& ns, const std::string& name) {
  auto object = api_.get(kube::kTrainingJobs, ns, name);
  if (object.ok()) return object;
  const Asked asked{.what = str_cat("get job ", job_text(ns, name)), .verb = "get", .ns = ns};
  if (!absl::IsNotFound(object.status()) || !kube::status_object_of(object.status()))
    return plain(object.status(), asked);
  std::string text = str_cat("there is no job \"", name, "\" in namespace ", ns);
  const auto listed = list_jobs(ns);
  if (!listed.ok()) return absl::NotFoundError(text);
  const std::vector<Json>& others = listed->objects;
  if (others.empty())
    return absl::NotFoundError(str_cat(text, "; it has none (-n chooses another namespace, -A lists all)"));
  text += "; it has: ";
  for (std::size_t i = 0; i < others.size() && i < kNamesShown; ++i)
    text += str_cat(i == 0 ? "" : ", ", kube::text_at(others[i], {"metadata", "name"}));
  return absl::NotFoundError(others.size() > kNamesShown ? str_cat(text, ", ...") : text);
}

absl::StatusOr<std::vector<kube::SlimPod>> KubeJobs::pods(const std::string& ns, const std::string& job) {
  const Asked asked{.what = str_cat("list the pods of job ", job_text(ns, job)),
                    .verb = "list",
                    .resource = kube::kPods,
                    .ns = ns};
  std::vector<kube::SlimPod> pods;
  PL_RETURN_IF_ERROR(list({kube::kPods, ns, str_cat(kube::kJobNameLabel, "=", job)}, asked,
                          [&](const std::vector<Json>& page, bool first) {
                            if (first) pods.clear();
                            for (const Json& object : page) {
                              if (auto pod = kube::slim_pod(object)) pods.push_back(*std::move(pod));
                            }
                          })
                         .status());
  std::ranges::sort(pods, {}, [](const kube::SlimPod& pod) {
    return std::tuple(pod.role, pod.index, pod.attempt, pod.key);
  });
  return pods;
}

absl::Status KubeJobs::read_log(const kube::SlimPod& pod, const LogRequest& request, const LogSink& sink,
                                std::stop_token stop) {
  return read_pod_log(*this, pause_, pod, request, sink, std::move(stop));
}

absl::StatusOr<KubeJobs::Events> KubeJobs::events(const std::string& ns, const std::string& job) {
  const Asked asked{
      .what = str_cat("list the events of ", ns_text(ns)), .verb = "list", .resource = kCoreEvents, .ns = ns};
  Events result;
  // Two short lists instead of all that happens in the namespace.
  for (const char* kind : {"TrainingJob", "Pod"}) {
    std::string selector = str_cat("involvedObject.kind=", kind);
    if (!job.empty() && kind == kube::kTrainingJobs.kind) selector += str_cat(",involvedObject.name=", job);
    std::vector<EventView> found;
    const auto take = [&](const std::vector<Json>& page, bool first) {
      if (first) found.clear();
      for (const Json& object : page) {
        if (is_about(object, job)) found.push_back(read_event(object));
      }
      if (!job.empty()) keep_newest(found, kMostEvents);
    };
    PL_ASSIGN_OR_RETURN(
        std::string version,
        list({.resource = kCoreEvents, .ns = ns, .label_selector = "", .field_selector = selector}, asked,
             take));
    std::ranges::move(found, std::back_inserter(result.events));
    if (result.resource_version.empty())
      result.resource_version = std::move(version);  // nothing after it is missed
  }
  sort_events(result.events);
  return result;
}

absl::StatusOr<Json> KubeJobs::patch(const std::string& ns, const std::string& name, const Json& patch,
                                     const std::string& what) {
  auto changed = api_.merge_patch(kube::kTrainingJobs, ns, name, "", patch, {.field_manager = kFieldManager});
  if (changed.ok()) return changed;
  return plain(changed.status(),
               {.what = str_cat(what, " job ", job_text(ns, name)), .verb = "patch", .ns = ns});
}

absl::StatusOr<Json> KubeJobs::remove(const std::string& ns, const std::string& name, const std::string& uid,
                                      const std::string& propagation) {
  PL_ASSIGN_OR_RETURN(const Json before, job(ns, name));  // NOT_FOUND with names; and the uid
  PL_RETURN_IF_ERROR(check_uid(before, uid));
  kube::DeleteOptions options;
  options.uid = kube::text_at(before, {"metadata", "uid"});
  options.propagation = propagation;
  const auto removed = api_.remove(kube::kTrainingJobs, ns, name, options);
  if (!removed.ok() && !absl::IsNotFound(removed.status()))
    return plain(removed.status(),
                 {.what = str_cat("delete job ", job_text(ns, name)), .verb = "delete", .ns = ns});
  return before;
}

}  // namespace paceline::jobs
