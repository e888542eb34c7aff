#include "controller/cluster/kube/kube_cluster.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "base/retry_after.h"
#include "base/status.h"
#include "controller/cluster/kube/api_error.h"
#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/times.h"

namespace paceline::kube {

namespace {

constexpr int kMaxPodEvents = 50;            // asked for at once
constexpr std::size_t kMaxNoteBytes = 1000;  // the API server takes 1024
constexpr Duration kShortestGrace = std::chrono::seconds(1);

std::string key_of(const std::string& ns, const std::string& name) {
  return str_cat(ns, "/", name);
}

absl::Status not_ours(std::string_view kind, const std::string& key, const std::string& owner) {
  if (!owner.empty())  // names of two jobs' children differ
    return absl::UnavailableError(
        str_cat(kind, " ", key, " of an earlier job of this name has not gone yet"));
  return absl::FailedPreconditionError(str_cat(
      kind, " ", key, " exists, but belongs to no TrainingJob; delete it, or give the job another name"));
}

// A quota and a namespace's end come as 403, too, though no right is missing.
absl::Status of_creation(const absl::Status& status) {
  if (namespace_ends(status)) return absl::CancelledError(status.message());
  return is_over_quota(status) ? absl::ResourceExhaustedError(status.message()) : status;
}

}  // namespace

std::optional<KubeCluster::Child> KubeCluster::child_of(const Json& object) {
  const std::string& name = text_at(object, {"metadata", "name"});
  const std::string& job = text_at(object, {"metadata", "labels", kJobNameLabel});
  if (name.empty() || job.empty()) return std::nullopt;
  const std::string& ns = text_at(object, {"metadata", "namespace"});
  return Child{key_of(ns, name), key_of(ns, job), text_at(object, {"metadata", "resourceVersion"}),
               owner_uid(object), selects_pods(object, job)};
}

KubeCluster::KubeCluster(ApiClient& api, const Clock& clock, Logger log, KubeClusterOptions options)
    : api_(api),
      clock_(clock),
      options_(std::move(options)),
      pod_store_(slim_pod),
      service_store_(child_of),
      pods_(
          api, {kPods, options_.ns, kJobNameLabel}, pod_store_, clock, log, options_.seed,
          [this](const std::string& key) { feed_.publish(key); }, {}, options_.pause),
      services_(
          api, {kServices, options_.ns, kJobNameLabel}, service_store_, clock, log, options_.seed + 1,
          [this](const std::string& key) { feed_.publish(key); }, {}, options_.pause) {
  pods_.start();
  services_.start();
}

void KubeCluster::list_again() {
  pods_.list_again();
  services_.list_again();
}

absl::Status KubeCluster::wait_synced(Duration timeout) {
  const Deadline deadline = Deadline::after(clock_.now(), timeout);
  PL_RETURN_IF_ERROR(pods_.wait_synced(timeout));
  return services_.wait_synced(deadline.remaining(clock_.now()));
}

absl::StatusOr<cluster::Pod> KubeCluster::create_pod(const cluster::PodSpec& spec) {
  PL_ASSIGN_OR_RETURN(const Json manifest, pod_manifest(spec, options_.image));
  absl::StatusOr<Json> created = api_.create(kPods, spec.ns, manifest, ApiClient::Unknown::kRefuse);
  if (absl::IsAlreadyExists(created.status())) {
    PL_ASSIGN_OR_RETURN(const Json there, api_.get(kPods, spec.ns, spec.name));
    if (owner_uid(there) != spec.job_uid)
      return not_ours("pod", key_of(spec.ns, spec.name), owner_uid(there));
    pod_store_.offer(there);
    return created.status();
  }
  if (!created.ok()) return of_creation(created.status());
  const std::optional<SlimPod> slim = slim_pod(*created);
  if (!slim) {
    return absl::DataLossError(str_cat("creating pod ", key_of(spec.ns, spec.name),
                                       ": the API server answered with something else"));
  }
  pod_store_.offer(*created);
  feed_.publish(slim->job_key);
  cluster::Pod pod = to_cluster_pod(*slim);
  pod.spec = spec;
  return pod;
}

absl::Status KubeCluster::delete_pod(const std::string& ns, const std::string& name, const std::string& uid,
                                     Duration grace) {
  DeleteOptions options;
  options.uid = uid;
  options.grace = std::max(grace, kShortestGrace);
  const absl::StatusOr<Json> removed = api_.remove(kPods, ns, name, options);
  if (removed.ok()) pod_store_.offer(*removed);
  if (!absl::IsAborted(removed.status())) return removed.status();
  return absl::NotFoundError(str_cat("pod ", key_of(ns, name), " with uid ", uid, " does not exist"));
}

absl::StatusOr<std::vector<cluster::Pod>> KubeCluster::list_pods(const std::string& ns,
                                                                 const std::string& job) {
  if (!pods_.synced()) return absl::UnavailableError("the list of pods has not come yet");
  const PendingNotes::Pods slim = pod_store_.of_job(key_of(ns, job));
  ask_why_pending(slim);
  std::vector<cluster::Pod> pods;
  pods.reserve(slim.size());
  for (const auto& pod : slim) pods.push_back(to_cluster_pod(*pod));
  auto notes = notes_.lock();
  for (cluster::Pod& pod : pods) notes->add_to(pod);
  return pods;
}

void KubeCluster::ask_why_pending(const PendingNotes::Pods& pods) {
  const auto pod = notes_.lock()->next(pods, clock_.now());
  if (pod == nullptr) return;
  // As core/v1 has them: what selects by the object that an event is about.
  constexpr Resource kPodEvents{"v1", "events", "Event"};
  const Scope scope{kPodEvents, pod->key.substr(0, pod->key.find('/')), "",
                    str_cat("involvedObject.uid=", pod->uid, ",type=Warning")};
  const absl::StatusOr<Page> events = api_.list(scope, kMaxPodEvents, "", {}, kQuestionLimit);
  if (events.ok()) {
    notes_.lock()->on_events(*pod, events->items);
  } else {
    notes_.lock()->no_answer(clock_.now());  // the pod's status has to do
  }
}

std::string KubeCluster::host_trouble(const std::string& host) {
  {
    auto nodes = nodes_.lock();
    if (!nodes->is_old(host, clock_.now())) return nodes->of(host);
    nodes->set(host, nodes->of(host), clock_.now());  // nobody else asks meanwhile
  }
  const absl::StatusOr<Json> node = api_.get(kNodes, "", host, kQuestionLimit);
  auto nodes = nodes_.lock();
  if (node.ok()) nodes->set(host, trouble_of(*node, options_.node_signs), clock_.now());
  return nodes->of(host);
}

// ---- what a job has once

// Nobody reads it but pods that start, and one that can't start for want of it says so: that it comes back
// while none does is only order. So it costs little: for all jobs together a request a second at most.
bool KubeCluster::may_look_for_secret(Kept& kept, Known& known, bool lacked) {
  const TimePoint now = clock_.now();
  if (lacked) {
    if (known.lacked && now - *known.lacked < kSecretLookOfOne) return false;
    known.lacked = now;
    return true;
  }
  if (now - known.seen < kSecretLook || (kept.looked && now - *kept.looked < kBetweenSecretLooks))
    return false;
  kept.looked = now;
  return true;
}

bool KubeCluster::lacks_its_secret(const std::string& job_key) {
  return std::ranges::any_of(pod_store_.of_job(job_key), [](const auto& pod) {
    return pod->phase == cluster::PodPhase::kPending && pod->reason == "CreateContainerConfigError";
  });
}

absl::StatusOr<std::string> KubeCluster::ensure_job(const cluster::JobObjects& job) {
  const std::string key = key_of(job.ns, job.job);
  if (!services_.synced()) return absl::UnavailableError("the list of services has not come yet");
  const bool lacked = lacks_its_secret(key);
  std::string token;
  bool look = true;
  {
    auto kept = kept_.lock();
    const auto found = kept->jobs.find(key);
    if (found != kept->jobs.end() && found->second.uid == job.job_uid) {
      token = found->second.token;
      look = may_look_for_secret(*kept, found->second, lacked);
    }
  }
  const Owner owner{job.ns, job.job, job.job_uid};
  const TimePoint now = clock_.now();
  PL_RETURN_IF_ERROR(ensure_service(owner));
  if (!look) return token;
  if (token.empty() && job.token.empty()) return std::string();  // a job whose members need none
  absl::StatusOr<std::string> there = absl::NotFoundError("not asked");
  if (token.empty()) {
    PL_ASSIGN_OR_RETURN(token, earlier_token(owner));
  } else {
    there = token_in_secret(owner, secret_name(owner.job, owner.uid));
  }
  if (absl::IsNotFound(there.status())) there = ensure_secret(owner, token.empty() ? job.token : token);
  PL_RETURN_IF_ERROR(there.status());
  auto kept = kept_.lock();
  if (kept->jobs.size() >= kMaxRememberedJobs) kept->jobs.clear();
  Known& known = kept->jobs[key];
  if (known.uid != job.job_uid) known = {.uid = job.job_uid};
  known.token = *there;
  known.seen = now;
  return *there;
}

absl::Status KubeCluster::ensure_service(const Owner& owner) {
  const std::string name = service_name(owner.job);
  const auto service = service_store_.find(key_of(owner.ns, name));
  if (service == nullptr || service->owner != owner.uid) return create_service(owner);
  if (service->selects_pods) return absl::OkStatus();
  const absl::StatusOr<Json> changed =
      api_.merge_patch(kServices, owner.ns, name, "", selecting_pods(owner.job, service->resource_version));
  if (changed.ok()) service_store_.offer(*changed);
  return with_context_and_time(changed.status(), str_cat("service ", key_of(owner.ns, name)));
}

absl::Status KubeCluster::create_service(const Owner& owner) {
  const absl::StatusOr<Json> created = api_.create(kServices, owner.ns, service_manifest(owner));
  if (created.ok()) {
    service_store_.offer(*created);
    return absl::OkStatus();
  }
  if (!absl::IsAlreadyExists(created.status())) return of_creation(created.status());
  const std::string name = service_name(owner.job);
  PL_ASSIGN_OR_RETURN(const Json there, api_.get(kServices, owner.ns, name));
  if (owner_uid(there) != owner.uid) return not_ours("service", key_of(owner.ns, name), owner_uid(there));
  service_store_.offer(there);
  return absl::OkStatus();
}

absl::StatusOr<std::string> KubeCluster::ensure_secret(const Owner& owner, const std::string& token) {
  const absl::Status created = api_.create(kSecrets, owner.ns, secret_manifest(owner, token)).status();
  if (created.ok()) return token;
  if (!absl::IsAlreadyExists(created)) return of_creation(created);
  return token_in_secret(owner, secret_name(owner.job, owner.uid));
}

// The token that pods of the job have, where an earlier version of the controller made them.
absl::StatusOr<std::string> KubeCluster::earlier_token(const Owner& owner) {
  const bool any = std::ranges::any_of(pod_store_.of_job(key_of(owner.ns, owner.job)),
                                       [&](const auto& pod) { return pod->job_uid == owner.uid; });
  if (!any) return std::string();
  absl::StatusOr<std::string> token = token_in_secret(owner, secret_name(owner.job, ""));
  if (absl::IsNotFound(token.status()) || absl::IsFailedPrecondition(token.status())) return std::string();
  return token;
}

absl::StatusOr<std::string> KubeCluster::token_in_secret(const Owner& owner, const std::string& name) {
  PL_ASSIGN_OR_RETURN(const Json there, api_.get(kSecrets, owner.ns, name));
  if (owner_uid(there) != owner.uid) return not_ours("secret", key_of(owner.ns, name), owner_uid(there));
  std::string decoded;
  if (!absl::Base64Unescape(text_at(there, {"data", kTokenKey}), &decoded) || decoded.empty()) {
    return absl::FailedPreconditionError(str_cat("secret ", key_of(owner.ns, name), " has no readable \"",
                                                 kTokenKey, "\"; delete it, it will be made again"));
  }
  return decoded;
}

// ---- events

absl::Status KubeCluster::record_event(const cluster::Event& event) {
  const auto salt = static_cast<std::uint64_t>(clock_.wall_now().time_since_epoch().count());
  EventSeries::Action action = events_.lock()->take(event, clock_.now(), salt);
  if (std::holds_alternative<EventSeries::Nothing>(action)) return absl::OkStatus();
  if (std::holds_alternative<EventSeries::Drop>(action)) {
    return absl::ResourceExhaustedError(str_cat("job ", event.ns, "/", event.job, " has more than ",
                                                kEventBurst, " different events at once"));
  }
  if (const auto* count = std::get_if<EventSeries::Count>(&action)) {
    const Json patch = {
        {"series", {{"count", count->count}, {"lastObservedTime", format_micro_time(clock_.wall_now())}}}};
    const absl::Status status = api_.merge_patch(kEvents, event.ns, count->name, "", patch).status();
    if (!absl::IsNotFound(status)) return status;
    // The API server keeps events for an hour.
    events_.lock()->forget(event);
    action = events_.lock()->take(event, clock_.now(), salt);
  }
  const auto* create = std::get_if<EventSeries::Create>(&action);
  if (create == nullptr) return absl::OkStatus();
  const absl::Status status = write_event(event, create->name);
  if (!status.ok()) events_.lock()->forget(event);
  return status;
}

absl::Status KubeCluster::write_event(const cluster::Event& event, const std::string& name) {
  Json regarding = {{"apiVersion", kTrainingJobs.api_version},
                    {"kind", kTrainingJobs.kind},
                    {"namespace", event.ns},
                    {"name", event.job}};
  if (!event.job_uid.empty()) regarding["uid"] = event.job_uid;  // `kubectl describe` asks by it
  const Json object = {
      {"apiVersion", kEvents.api_version},
      {"kind", kEvents.kind},
      {"metadata", {{"name", name}, {"namespace", event.ns}}},
      {"eventTime", format_micro_time(clock_.wall_now())},
      {"reportingController", "paceline.dev/controller"},
      {"reportingInstance", options_.instance.empty() ? "paceline-controller" : options_.instance},
      {"action", "Reconcile"},
      {"type", event.warning ? "Warning" : "Normal"},
      {"reason", sanitize_line(event.reason, 120)},
      {"note", sanitize_line(event.message, kMaxNoteBytes)},
      {"regarding", std::move(regarding)}};
  return of_creation(api_.create(kEvents, event.ns, object).status());
}

// ---- the rest

void KubeCluster::watch(OnChange on_change) {
  const bool receives = static_cast<bool>(on_change);
  feed_.set_receiver(std::move(on_change));
  if (!receives) return;
  for (const std::string& key : pod_store_.job_keys()) feed_.publish(key);
}

absl::StatusOr<std::string> KubeCluster::tail_log(const cluster::Pod& pod, int lines) {
  const auto slim = pod_store_.find(key_of(pod.spec.ns, pod.spec.name));
  const std::string container = slim == nullptr             ? ""
                                : slim->failed_init.empty() ? slim->trainer
                                                            : slim->failed_init;
  return api_.log(pod.spec.ns, pod.spec.name, container, std::max(lines, 1), kTailLimitBytes, kTailLimit);
}

}  // namespace paceline::kube
