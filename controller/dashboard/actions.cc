#include "controller/dashboard/actions.h"

#include <array>
#include <utility>

#include "base/text.h"
#include "controller/api/edit.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/resources.h"
#include "controller/dashboard/job_row.h"

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

absl::StatusOr<Json> scale_patch(const Json& object, const Json& body) {
  const Json& replicas = kube::at(body, {"replicas"});
  if (!replicas.is_number_integer())
    return absl::InvalidArgumentError("the body must be {\"replicas\": N}, where N is a whole number");
  const std::optional<std::string> key = worker_key(object);
  if (!key) return absl::FailedPreconditionError("the job has no workers");
  const api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  if (!parsed.job) {
    return absl::FailedPreconditionError(
        str_cat("the job can't be run, so scaling does not help: ", kube::errors_of(parsed.diagnostics)));
  }
  const auto wanted = replicas.get<std::int64_t>();
  if (!api::allowed_replicas(*parsed.job, Role::kWorker).holds(wanted)) {
    return absl::InvalidArgumentError(str_cat("there can't be ", wanted, " workers; allowed: ",
                                              api::allowed_replicas_text(*parsed.job, Role::kWorker)));
  }
  Json patch;
  patch["spec"]["replicaSpecs"][*key]["replicas"] = wanted;
  return patch;
}

}  // namespace

std::string_view name(Action action) {
  for (const auto& [each, text] : kNames) {
    if (each == action) return text;
  }
  return "";
}

std::optional<Action> action_named(std::string_view name) {
  for (const auto& [each, text] : kNames) {
    if (text == name) return each;
  }
  return std::nullopt;
}

std::string why_not(Action action, const Json& object) {
  if (!kube::text_at(object, {"metadata", "deletionTimestamp"}).empty()) return "it is being deleted";
  if (action == Action::kDelete) return "";
  if (action == Action::kCheckpoint)
    return "members save by the job's own spec.checkpoint; none can be asked for";
  if (action == Action::kReplace)
    return "members are replaced by the job's own spec.stragglers; none can be asked for";
  if (has_ended(object)) return "it has ended";
  if (action == Action::kScale && !worker_key(object)) return "it has no workers";
  if (action == Action::kSuspend && is_suspended(object)) return "it is suspended already";
  if (action == Action::kResume && !is_suspended(object)) return "it is not suspended";
  return "";
}

Json actions_json(const Json& object, const std::function<std::string(Action, const Json&)>& why_not) {
  Json actions = Json::object();
  for (const auto& [action, text] : kNames) {
    const std::string why = why_not(action, object);
    Json& item = actions[std::string(text)];
    item["allowed"] = why.empty();
    if (!why.empty()) item["why"] = why;
  }
  return actions;
}

absl::StatusOr<Json> patch_of(Action action, const Json& object, const Json& body) {
  if (action == Action::kScale) return scale_patch(object, body);
  return Json{{"spec", {{"runPolicy", {{"suspend", action == Action::kSuspend}}}}}};
}

}  // namespace paceline::dashboard
