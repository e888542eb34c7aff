#include "controller/dashboard/actions.h"

#include <array>
#include <optional>
#include <utility>

#include "base/pluralize.h"
#include "base/status.h"
#include "base/text.h"
#include "controller/api/edit.h"
#include "controller/api/requests.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/status_json.h"
#include "controller/cluster/kube/times.h"
#include "controller/dashboard/job_row.h"
#include "controller/plan/requests.h"

namespace paceline::dashboard {

namespace {

using kube::Json;

constexpr std::array<std::pair<Action, std::string_view>, 6> kNames = {{{Action::kSuspend, "suspend"},
                                                                        {Action::kResume, "resume"},
                                                                        {Action::kScale, "scale"},
                                                                        {Action::kCheckpoint, "checkpoint"},
                                                                        {Action::kReplace, "replace"},
                                                                        {Action::kDelete, "delete"}}};

bool is_suspended(const Json& object) {
  return kube::flag_at(object, {"spec", "runPolicy", "suspend"});
}

// Spelt as the object has it: names of roles are in any case.
std::optional<std::string> worker_key(const Json& object) {
  const Json& replicas = kube::at(object, {"spec", "replicaSpecs"});
  if (!replicas.is_object()) return std::nullopt;
  for (const auto& [key, spec] : replicas.items()) {
    if (kube::role_named(key) == Role::kWorker) return key;
  }
  return std::nullopt;
}

absl::StatusOr<api::TrainingJob> parsed_job(const Json& object, std::string_view action) {
  api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  if (!parsed.job) {
    return absl::FailedPreconditionError(str_cat("the job can't be run, so ", action,
                                                 " does not help: ", kube::errors_of(parsed.diagnostics)));
  }
  parsed.job->status = kube::status_from_json(kube::at(object, {"status"}));
  return *std::move(parsed.job);
}

absl::StatusOr<Deed> scale(const Json& object, const Json& body) {
  const Json& replicas = kube::at(body, {"replicas"});
  if (!replicas.is_number_integer())
    return absl::InvalidArgumentError("the body must be {\"replicas\": N}, where N is a whole number");
  const std::optional<std::string> key = worker_key(object);
  if (!key) return absl::FailedPreconditionError("the job has no workers");
  PL_ASSIGN_OR_RETURN(const api::TrainingJob job, parsed_job(object, "scaling"));
  const auto wanted = replicas.get<std::int64_t>();
  if (!api::allowed_replicas(job, Role::kWorker).holds(wanted)) {
    return absl::InvalidArgumentError(str_cat(
        "there can't be ", wanted, " workers; allowed: ", api::allowed_replicas_text(job, Role::kWorker)));
  }
  const std::string workers = pluralize(wanted, "worker", "workers");
  const std::int64_t before = job.spec.replica_specs.worker->replicas;
  if (before == wanted) return absl::FailedPreconditionError(str_cat("it has ", workers, " already"));
  Deed deed{.asked = str_cat("scale it from ", before, " to ", workers),
            .done = str_cat("is being scaled to ", workers)};
  deed.patch["spec"]["replicaSpecs"][*key]["replicas"] = wanted;
  return deed;
}

// How many workers it may have.
absl::StatusOr<api::ReplicaRange> workers_of(const Json& object) {
  if (!worker_key(object)) return absl::FailedPreconditionError("it has no workers");
  PL_ASSIGN_OR_RETURN(const api::TrainingJob job, parsed_job(object, "scaling"));
  const api::ReplicaRange range = api::allowed_replicas(job, Role::kWorker);
  if (range.min < range.max) return range;
  return absl::FailedPreconditionError(
      str_cat("its number of workers stays ", api::allowed_replicas_text(job, Role::kWorker)));
}

Deed request(const char* annotation, const std::string& text) {
  Deed deed;
  deed.patch["metadata"]["annotations"][annotation] = text;
  return deed;
}

absl::StatusOr<Deed> replace(const Json& object, const Json& body, const std::string& now) {
  const auto member = api::member_named(kube::text_at(body, {"member"}));
  if (!member)
    return absl::InvalidArgumentError("the body must be {\"member\": \"ROLE-INDEX\"}, such as worker-2");
  PL_ASSIGN_OR_RETURN(const api::TrainingJob job, parsed_job(object, "replacing a member"));
  if (std::string why = plan::replace_obstacle(job, *member); !why.empty())
    return absl::FailedPreconditionError(why);
  const std::string name = paceline::member_name(member->role, member->index);
  Deed deed = request(api::kReplaceRequest, str_cat(name, "@", now));
  deed.asked = str_cat("replace ", name);
  deed.done = str_cat("goes on, and another member takes over from ", name, " when it has the state");
  return deed;
}

std::string suspended_text(const Json& object) {
  return str_cat("is being suspended: its members ", keeps_checkpoints(object)
                                                         ? "save a checkpoint and stop"
                                                         : "stop, and its checkpoints go with its pods");
}

std::string resumed_text(const Json& object) {
  return keeps_checkpoints(object) ? "goes on, from its newest checkpoint" : "begins anew at step 0";
}

// By the object alone, since every viewer's page asks.
std::string why_not_save(const Json& object) {
  const std::string manager = kube::text_at(object, {"spec", "runPolicy", "managedBy"});
  if (!api::is_ours(manager)) return str_cat("it is managed by ", manager, ", not by Paceline");
  if (!kube::at(object, {"spec", "training"}).is_object())
    return "a program of its own (no spec.training) saves by itself";
  if (const std::string phase = phase_of(object); phase != "Running")
    return str_cat("its members do not train now: it is ", phase);
  const bool asked = kube::text_at(object, {"status", "requests", "checkpoint", "outcome"}) ==
                     api::name(api::RequestOutcome::kUnderWay);
  return asked ? "one is asked for already" : "";
}

// Some member can be replaced, or none: the action itself says which.
std::string why_not_replace(const Json& object) {
  const auto job = parsed_job(object, "replacing a member");
  if (!job.ok()) return std::string(job.status().message());
  std::string why;
  for (const Role role : {Role::kChief, Role::kWorker}) {
    if (!plan::has_place(*job, {role, 0})) continue;
    why = plan::replace_obstacle(*job, {role, 0});
    if (why.empty()) break;
  }
  return why;
}

}  // namespace

std::string_view name(Action action) {
  for (const auto& [each, text] : kNames) {
    if (each == action) return text;
  }
  return "";
}

std::string why_not(Action action, const Json& object) {
  if (!kube::text_at(object, {"metadata", "deletionTimestamp"}).empty()) return "it is being deleted";
  if (action == Action::kDelete) return "";
  if (has_ended(object)) return "it has ended";
  if (action == Action::kScale) return std::string(workers_of(object).status().message());
  if (action == Action::kCheckpoint) return why_not_save(object);
  if (action == Action::kReplace) return why_not_replace(object);
  if (action == Action::kSuspend && is_suspended(object)) return "it is suspended already";
  if (action == Action::kResume && !is_suspended(object)) return "it is not suspended";
  return "";
}

Json actions_json(const Json& object, const Rights& rights,
                  const std::function<std::string(Action, const Json&)>& why_not) {
  Json actions = Json::object();
  for (const auto& [action, text] : kNames) {
    const bool removes = action == Action::kDelete;
    std::string why = why_not(action, object);
    if (!(removes ? rights.remove : rights.update))
      why = str_cat("you may not ", removes ? "delete" : "update", " it");
    Json& item = actions[std::string(text)];
    item["allowed"] = why.empty();
    if (!why.empty()) item["why"] = why;
    if (action != Action::kScale || !why.empty()) continue;
    if (const auto workers = workers_of(object); workers.ok()) {
      item["least"] = workers->min;
      item["most"] = workers->max;
    }
  }
  return actions;
}

absl::StatusOr<Deed> deed_of(Action action, const Json& object, const Json& body, WallTime now) {
  const std::string moment = kube::format_micro_time(now);
  absl::StatusOr<Deed> deed = Deed{};
  switch (action) {
    case Action::kSuspend:
    case Action::kResume:
      deed->patch = {{"spec", {{"runPolicy", {{"suspend", action == Action::kSuspend}}}}}};
      deed->done = action == Action::kSuspend ? suspended_text(object) : resumed_text(object);
      break;
    case Action::kScale:
      deed = scale(object, body);
      break;
    case Action::kCheckpoint:
      deed = request(api::kCheckpointRequest, moment);
      deed->asked = "save a checkpoint";
      deed->done = "saves a checkpoint after the step under way";
      break;
    case Action::kReplace:
      deed = replace(object, body, moment);
      break;
    case Action::kDelete:
      deed->done = "is being deleted";
      break;
  }
  PL_RETURN_IF_ERROR(deed.status());
  if (deed->asked.empty()) deed->asked = str_cat(name(action), " it");
  deed->done = str_cat(kube::text_at(object, {"metadata", "namespace"}), "/",
                       kube::text_at(object, {"metadata", "name"}), " ", deed->done);
  return deed;
}

}  // namespace paceline::dashboard
