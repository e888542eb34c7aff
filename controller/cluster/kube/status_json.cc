#include "controller/cluster/kube/status_json.h"

#include <cmath>
#include <string>
#include <string_view>

#include "controller/cluster/kube/times.h"

namespace paceline::kube {

namespace {

// ---- one field: put() leaves out what is empty, take() leaves as it is what is missing

void put(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}
void put(Json& json, const char* key, std::int64_t value) {
  if (value != 0) json[key] = value;
}
void put(Json& json, const char* key, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) json[key] = *value;  // JSON has no NaN
}
void put(Json& json, const char* key, double value) {
  if (value != 0) put(json, key, std::optional(value));
}
void put(Json& json, const char* key, const std::optional<WallTime>& value) {
  if (value) json[key] = format_wall_time(*value);
}

void take(const Json& json, const char* key, std::string& value) {
  value = text_at(json, {key});
}
void take(const Json& json, const char* key, std::int64_t& value) {
  value = integer_at(json, {key});
}
void take(const Json& json, const char* key, double& value) {
  value = number_at(json, {key}).value_or(value);
}
void take(const Json& json, const char* key, std::optional<double>& value) {
  value = number_at(json, {key});
}
void take(const Json& json, const char* key, std::optional<WallTime>& value) {
  value = parse_time(text_at(json, {key}));
}

api::Phase phase_of(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(api::Phase::kSuspended); ++i) {
    if (name == api::name(static_cast<api::Phase>(i))) return static_cast<api::Phase>(i);
  }
  return api::Phase::kPending;
}

Role role_of(std::string_view name) {
  for (const Role role : {Role::kChief, Role::kServer, Role::kEvaluator}) {
    if (name == role_name(role)) return role;
  }
  return Role::kWorker;
}

api::RestartCause cause_of(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(api::RestartCause::kResized); ++i) {
    if (name == api::name(static_cast<api::RestartCause>(i))) return static_cast<api::RestartCause>(i);
  }
  return api::RestartCause::kExited;
}

// ---- the parts

Json to_json(const api::Condition& condition) {
  Json json = {{"type", condition.type}, {"status", condition.status ? "True" : "False"}};
  put(json, "reason", condition.reason);
  put(json, "message", condition.message);
  put(json, "lastTransitionTime", std::optional(condition.last_transition));
  put(json, "observedGeneration", condition.observed_generation.value);
  return json;
}

api::Condition condition_from(const Json& json) {
  api::Condition condition;
  take(json, "type", condition.type);
  condition.status = text_at(json, {"status"}) == "True";
  take(json, "reason", condition.reason);
  take(json, "message", condition.message);
  condition.last_transition = parse_time(text_at(json, {"lastTransitionTime"})).value_or(WallTime());
  take(json, "observedGeneration", condition.observed_generation.value);
  return condition;
}

Json to_json(const api::ReplicaStatus& replicas) {
  Json json = {{"role", role_name(replicas.role)}};
  put(json, "active", replicas.active);
  put(json, "ready", replicas.ready);
  put(json, "succeeded", replicas.succeeded);
  put(json, "failed", replicas.failed);
  return json;
}

api::ReplicaStatus replicas_from(const Json& json) {
  api::ReplicaStatus replicas;
  replicas.role = role_of(text_at(json, {"role"}));
  take(json, "active", replicas.active);
  take(json, "ready", replicas.ready);
  take(json, "succeeded", replicas.succeeded);
  take(json, "failed", replicas.failed);
  return replicas;
}

Json to_json(const api::Restarts& restarts) {
  Json json = Json::object();
  put(json, "attempt", restarts.attempt);
  put(json, "size", restarts.size);
  put(json, "fullAttempt", restarts.full_attempt);
  put(json, "inARow", restarts.in_a_row);
  put(json, "total", restarts.total);
  for (const api::RestartCount& each : restarts.by_cause) {
    json["byCause"].push_back(
        {{"role", role_name(each.role)}, {"cause", api::name(each.cause)}, {"count", each.count}});
  }
  for (const api::Replacement& each : restarts.replacements) {
    json["replacements"].push_back(
        {{"role", role_name(each.role)}, {"index", each.index}, {"count", each.count}});
  }
  put(json, "notBefore", restarts.not_before);
  return json;
}

api::Restarts restarts_from(const Json& json) {
  api::Restarts restarts;
  take(json, "attempt", restarts.attempt);
  take(json, "size", restarts.size);
  take(json, "fullAttempt", restarts.full_attempt);
  take(json, "inARow", restarts.in_a_row);
  take(json, "total", restarts.total);
  for (const Json& each : list_at(json, {"byCause"})) {
    restarts.by_cause.push_back(
        {role_of(text_at(each, {"role"})), cause_of(text_at(each, {"cause"})), integer_at(each, {"count"})});
  }
  for (const Json& each : list_at(json, {"replacements"})) {
    restarts.replacements.push_back(
        {role_of(text_at(each, {"role"})), integer_at(each, {"index"}), integer_at(each, {"count"})});
  }
  take(json, "notBefore", restarts.not_before);
  return restarts;
}

Json to_json(const api::Progress& progress) {
  Json json = Json::object();
  put(json, "step", progress.step);
  put(json, "totalSteps", progress.total_steps);
  put(json, "epoch", progress.epoch);
  put(json, "loss", progress.loss);
  put(json, "testLoss", progress.test_loss);
  put(json, "testAccuracy", progress.test_accuracy);
  put(json, "samplesPerSecond", progress.samples_per_second);
  put(json, "goodput", progress.goodput);
  put(json, "etaSeconds", progress.eta_seconds);
  return json;
}

api::Progress progress_from(const Json& json) {
  api::Progress progress;
  take(json, "step", progress.step);
  take(json, "totalSteps", progress.total_steps);
  take(json, "epoch", progress.epoch);
  take(json, "loss", progress.loss);
  take(json, "testLoss", progress.test_loss);
  take(json, "testAccuracy", progress.test_accuracy);
  take(json, "samplesPerSecond", progress.samples_per_second);
  take(json, "goodput", progress.goodput);
  take(json, "etaSeconds", progress.eta_seconds);
  return progress;
}

Json to_json(const api::MemberStatus& member) {
  Json json = {{"role", role_name(member.role)}, {"index", member.index}, {"rank", member.rank}};
  put(json, "pod", member.pod);
  put(json, "host", member.host);
  put(json, "pid", member.pid);
  put(json, "phase", member.phase);
  put(json, "step", member.step);
  put(json, "computeFraction", member.compute_fraction);
  put(json, "waitFraction", member.wait_fraction);
  return json;
}

api::MemberStatus member_from(const Json& json) {
  api::MemberStatus member;
  member.role = role_of(text_at(json, {"role"}));
  take(json, "index", member.index);
  member.rank = at(json, {"rank"}).is_number_integer() ? integer_at(json, {"rank"}) : -1;
  take(json, "pod", member.pod);
  take(json, "host", member.host);
  take(json, "pid", member.pid);
  take(json, "phase", member.phase);
  take(json, "step", member.step);
  take(json, "computeFraction", member.compute_fraction);
  take(json, "waitFraction", member.wait_fraction);
  return member;
}

}  // namespace

Json status_to_json(const api::Status& status) {
  Json json = {{"phase", api::name(status.phase)}};
  put(json, "reason", status.reason);
  put(json, "message", status.message);
  for (const api::Condition& condition : status.conditions) json["conditions"].push_back(to_json(condition));
  put(json, "observedGeneration", status.observed_generation.value);
  for (const api::ReplicaStatus& each : status.replica_statuses)
    json["replicaStatuses"].push_back(to_json(each));
  Json restarts = to_json(status.restarts);
  if (!status.conditions.empty()) restarts["total"] = status.restarts.total;  // a printer column: 0 shows
  if (!restarts.empty()) json["restarts"] = std::move(restarts);
  if (status.view.generation.value > 0) {
    json["view"] = {{"generation", status.view.generation.value}, {"size", status.view.size}};
  }
  if (Json progress = to_json(status.progress); status.progress != api::Progress()) {
    json["progress"] = std::move(progress);
  }
  for (const api::MemberStatus& member : status.members) json["members"].push_back(to_json(member));
  put(json, "lastCheckpoint", status.last_checkpoint);
  put(json, "model", status.model);
  put(json, "startTime", status.start_time);
  put(json, "completionTime", status.completion_time);
  return json;
}

api::Status status_from_json(const Json& json) {
  api::Status status;
  status.phase = phase_of(text_at(json, {"phase"}));
  take(json, "reason", status.reason);
  take(json, "message", status.message);
  for (const Json& each : list_at(json, {"conditions"})) status.conditions.push_back(condition_from(each));
  take(json, "observedGeneration", status.observed_generation.value);
  for (const Json& each : list_at(json, {"replicaStatuses"}))
    status.replica_statuses.push_back(replicas_from(each));
  status.restarts = restarts_from(at(json, {"restarts"}));
  status.view.generation.value = static_cast<std::uint64_t>(integer_at(json, {"view", "generation"}));
  status.view.size = integer_at(json, {"view", "size"});
  status.progress = progress_from(at(json, {"progress"}));
  for (const Json& each : list_at(json, {"members"})) status.members.push_back(member_from(each));
  take(json, "lastCheckpoint", status.last_checkpoint);
  take(json, "model", status.model);
  take(json, "startTime", status.start_time);
  take(json, "completionTime", status.completion_time);
  return status;
}

}  // namespace paceline::kube
