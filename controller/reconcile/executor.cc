#include "controller/reconcile/executor.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/guarded.h"
#include "base/retry_after.h"
#include "base/text.h"

namespace paceline::reconcile {

namespace {

cluster::JobObjects objects_of(const std::string& ns, const std::string& job, const std::string& uid,
                               const std::map<std::string, std::string>& env) {
  const auto token = env.find("PACELINE_TOKEN");
  return {ns, job, uid, token == env.end() ? std::string() : token->second};
}

bool is_event(const plan::Action& action) {
  return std::holds_alternative<plan::RecordEvent>(action);
}

}  // namespace

Executor::Executor(cluster::Cluster& cluster, JobStore& jobs, const Clock& clock, Logger log,
                   int largest_batch, int create_threads)
    : cluster_(cluster),
      jobs_(jobs),
      clock_(clock),
      log_(std::move(log)),
      largest_batch_(static_cast<std::size_t>(largest_batch)),
      parallel_(create_threads) {}

absl::Status Executor::execute(const std::string& key, const plan::Plan& plan, bool status_first,
                               Creations& creations, absl::Status& refused) {
  absl::Status first_error;
  const bool events_first = status_first;  // it says so already
  for (const bool events : {events_first, !events_first}) {
    if (events && !first_error.ok()) break;
    std::vector<const plan::CreatePod*> missing;  // last: a deletion makes room
    for (const plan::Action& action : plan.actions) {
      if (is_event(action) != events) continue;
      if (const auto* creation = std::get_if<plan::CreatePod>(&action)) {
        missing.push_back(creation);
      } else {
        first_error.Update(perform(key, action));
      }
    }
    if (first_error.ok()) refused.Update(create_all(key, missing, creations));
  }
  return first_error;
}

absl::Status Executor::perform(const std::string& key, const plan::Action& action) {
  if (const auto* record = std::get_if<plan::RecordEvent>(&action)) {
    log_.info(record->event.message, {{"job", key}, {"reason", record->event.reason}});
    // An event that is lost is no reason to hold up the job.
    const absl::Status status = cluster_.record_event(record->event);
    if (!status.ok() && !absl::IsCancelled(status)) {
      log_.warning(str_cat("an event is lost: ", status.message()),
                   {{"job", key}, {"reason", record->event.reason}});
    }
    return absl::OkStatus();
  }
  if (const auto* removal = std::get_if<plan::DeleteJob>(&action)) {
    log_.info(str_cat("deleting the job: ", removal->reason), {{"job", key}, {"reason", "TimeToLive"}});
    const absl::Status status = jobs_.remove(key, removal->uid);
    return absl::IsNotFound(status) ? absl::OkStatus() : with_context_and_time(status, "deleting the job");
  }
  const auto& deletion = std::get<plan::DeletePod>(action);
  log_.debug(str_cat("deleting pod ", deletion.name), {{"job", key}, {"reason", deletion.reason}});
  const absl::Status status = cluster_.delete_pod(deletion.ns, deletion.name, deletion.uid, deletion.grace);
  return absl::IsNotFound(status) ? absl::OkStatus()
                                  : with_context_and_time(status, str_cat("deleting pod ", deletion.name));
}

void Executor::ensure(const std::string& key, const plan::Observed& observed) {
  const api::Metadata& metadata = observed.job.metadata;
  const absl::Status status =
      cluster_.ensure_job(objects_of(metadata.ns, metadata.name, observed.job_uid, observed.coordinator_env))
          .status();
  if (!status.ok() && !absl::IsCancelled(status)) {
    log_.warning(str_cat(status.message(), "; it is tried again"), {{"job", key}, {"reason", "EnsureError"}});
  }
}

absl::Status Executor::create(const std::string& key, const plan::CreatePod& action,
                              const Creations& creations) {
  log_.debug(str_cat("creating pod ", action.spec.name), {{"job", key}, {"reason", action.reason}});
  cluster::PodSpec spec = action.spec;
  if (const auto found = creations.pod_templates.find(spec.role); found != creations.pod_templates.end())
    spec.pod_template = found->second;
  absl::Status status = cluster_.ensure_job(objects_of(spec.ns, spec.job, spec.job_uid, spec.env)).status();
  if (status.ok()) status = cluster_.create_pod(spec).status();
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

absl::Status Executor::create_all(const std::string& key, const std::vector<const plan::CreatePod*>& missing,
                                  Creations& creations) {
  if (missing.empty()) return absl::OkStatus();
  // What wakes a pass meanwhile (its other pods come up) is no leave to ask again.
  const TimePoint now = clock_.now();
  if (creations.again && now < *creations.again && creations.failure) {
    absl::Status status = absl::UnavailableError(creations.failure->error);
    set_retry_after(status, std::chrono::ceil<std::chrono::milliseconds>(*creations.again - now));
    return status;
  }
  Guarded<std::map<std::size_t, absl::Status>> failures;  // of those that were asked for at the same time
  slow_start(parallel_, missing.size(), largest_batch_, [&](std::size_t i) {
    absl::Status status = create(key, *missing[i], creations);
    if (status.ok()) return true;
    failures.lock()->emplace(i, std::move(status));
    return false;
  });
  auto failed = failures.lock();
  creations.again.reset();
  if (failed->empty()) {
    creations.failure.reset();
    return absl::OkStatus();
  }
  const auto& [first, status] = *failed->begin();
  if (const auto asked = retry_after(status))
    creations.again = clock_.now() + std::min(*asked, kLongestRetryAfter);
  creations.failure = plan::CreateFailure{(creations.failure ? creations.failure->count : 0) + 1,
                                          missing[first]->spec.name, std::string(status.message())};
  return status;
}

}  // namespace paceline::reconcile
