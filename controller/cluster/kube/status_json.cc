#include "controller/cluster/kube/status_json.h"

#include <cmath>
#include <string>
#include <string_view>

#include "controller/cluster/kube/resources.h"
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
void put(Json& json, const char* key, const std::optional<std::int64_t>& value) {
  if (value) json[key] = *value;
}
void put(Json& json, const char* key, const std::optional<int>& value) {
  if (value) json[key] = *value;
}
void put(Json& json, const char* key, const std::vector<std::string>& value) {
  if (!value.empty()) json[key] = value;
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
void take(const Json& json, const char* key, std::optional<std::int64_t>& value) {
  if (at(json, {key}).is_number_integer()) value = integer_at(json, {key});
}
void take(const Json& json, const char* key, std::optional<int>& value) {
  if (at(json, {key}).is_number_integer()) value = static_cast<int>(integer_at(json, {key}));
}
void take(const Json& json, const char* key, std::vector<std::string>& value) {
  for (const Json& each : list_at(json, {key})) value.push_back(text_at(each, {}));
}
void take(const Json& json, const char* key, std::optional<WallTime>& value) {
  value = parse_time(text_at(json, {key}));
}

Role role_of(std::string_view name) {
  return role_named(name).value_or(Role::kWorker);
}

// The enumerator of this name; `other` where a newer controller has written one that is unknown here.
template <typename Enum>
Enum named(std::string_view name, Enum last, Enum other) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name == api::name(static_cast<Enum>(i))) return static_cast<Enum>(i);
  }
  return other;
}

api::RestartCause cause_of(std::string_view name) {
  return named(name, api::RestartCause::kResized, api::RestartCause::kExited);
}

// ---- the plain fields of each part, named once for both ways

template <typename Counts, typename Visit>
void replica_fields(Counts& replicas, Visit&& visit) {
  visit("active", replicas.active);
  visit("ready", replicas.ready);
  visit("succeeded", replicas.succeeded);
  visit("failed", replicas.failed);
}

template <typename Restarts, typename Visit>
void restart_fields(Restarts& restarts, Visit&& visit) {
  visit("attempt", restarts.attempt);
  visit("size", restarts.size);
  visit("fullAttempt", restarts.full_attempt);
  visit("inARow", restarts.in_a_row);
  visit("total", restarts.total);
  visit("notBefore", restarts.not_before);
}

template <typename Progress, typename Visit>
void progress_fields(Progress& progress, Visit&& visit) {
  visit("step", progress.step);
  visit("totalSteps", progress.total_steps);
  visit("epoch", progress.epoch);
  visit("loss", progress.loss);
  visit("testLoss", progress.test_loss);
  visit("testAccuracy", progress.test_accuracy);
  visit("testAuc", progress.test_auc);
  visit("samplesPerSecond", progress.samples_per_second);
  visit("goodput", progress.goodput);
  visit("etaSeconds", progress.eta_seconds);
}

template <typename Member, typename Visit>
void member_fields(Member& member, Visit&& visit) {
  visit("pod", member.pod);
  visit("host", member.host);
  visit("pid", member.pid);
  visit("phase", member.phase);
  visit("step", member.step);
  visit("computeFraction", member.compute_fraction);
  visit("waitFraction", member.wait_fraction);
}

template <typename Server, typename Visit>
void server_fields(Server& server, Visit&& visit) {
  visit("load", server.load);
  visit("bytesPerSecond", server.bytes_per_second);
  visit("queue", server.queue);
  visit("updates", server.updates);
  visit("rows", server.rows);
  visit("rowBytes", server.row_bytes);
  visit("rowsEvicted", server.rows_evicted);
}

template <typename Staleness, typename Visit>
void staleness_fields(Staleness& staleness, Visit&& visit) {
  visit("applied", staleness.applied);
  visit("dropped", staleness.dropped);
  visit("mean", staleness.mean);
  visit("max", staleness.max);
  visit("waitSeconds", staleness.wait_seconds);
}

template <typename Gpu, typename Visit>
void gpu_fields(Gpu& gpu, Visit&& visit) {
  visit("name", gpu.name);
  visit("computeMs", gpu.compute_ms);
  visit("updateMs", gpu.update_ms);
  visit("utilization", gpu.utilization);
  visit("memoryUtilization", gpu.memory_utilization);
  visit("smClockMhz", gpu.sm_clock_mhz);
  visit("mostSmClockMhz", gpu.most_sm_clock_mhz);
  visit("memoryClockMhz", gpu.memory_clock_mhz);
  visit("temperatureCelsius", gpu.temperature_celsius);
  visit("powerWatts", gpu.power_watts);
  visit("powerLimitWatts", gpu.power_limit_watts);
  visit("slowdowns", gpu.slowdowns);
  visit("correctedEccErrors", gpu.corrected_ecc_errors);
  visit("uncorrectedEccErrors", gpu.uncorrected_ecc_errors);
  visit("pcieReplays", gpu.pcie_replays);
  visit("xids", gpu.xids);
  visit("lastXid", gpu.last_xid);
}

template <typename Fault, typename Visit>
void fault_fields(Fault& fault, Visit&& visit) {
  visit("pod", fault.pod);
  visit("host", fault.host);
  visit("pid", fault.pid);
  visit("step", fault.step);
  visit("exitCode", fault.exit_code);
  visit("signal", fault.signal);
  visit("provisionalSince", fault.provisional_since);
}

template <typename Condition, typename Visit>
void condition_fields(Condition& condition, Visit&& visit) {
  visit("reason", condition.reason);
  visit("message", condition.message);
  visit("observedGeneration", condition.observed_generation.value);
}

template <typename Status, typename Visit>
void status_fields(Status& status, Visit&& visit) {
  visit("reason", status.reason);
  visit("message", status.message);
  visit("observedGeneration", status.observed_generation.value);
  visit("lastCheckpoint", status.last_checkpoint);
  visit("model", status.model);
  visit("startTime", status.start_time);
  visit("completionTime", status.completion_time);
}

auto putter(Json& json) {
  return [&json](const char* key, const auto& value) { put(json, key, value); };
}
auto taker(const Json& json) {
  return [&json](const char* key, auto& value) { take(json, key, value); };
}

// ---- the parts

Json to_json(const api::Condition& condition) {
  const char* const status = condition.unknown ? "Unknown" : condition.status ? "True" : "False";
  Json json = {{"type", condition.type}, {"status", status}};
  put(json, "lastTransitionTime", std::optional(condition.last_transition));
  condition_fields(condition, putter(json));
  return json;
}

api::Condition condition_from(const Json& json) {
  api::Condition condition;
  take(json, "type", condition.type);
  const std::string& status = text_at(json, {"status"});
  condition.status = status == "True";
  condition.unknown = !condition.status && status != "False";
  condition.last_transition = parse_time(text_at(json, {"lastTransitionTime"})).value_or(WallTime());
  condition_fields(condition, taker(json));
  return condition;
}

Json to_json(const api::ReplicaStatus& replicas) {
  Json json = {{"role", role_name(replicas.role)}};
  replica_fields(replicas, putter(json));
  return json;
}

api::ReplicaStatus replicas_from(const Json& json) {
  api::ReplicaStatus replicas{.role = role_of(text_at(json, {"role"}))};
  replica_fields(replicas, taker(json));
  return replicas;
}

Json to_json(const api::Restarts& restarts) {
  Json json = Json::object();
  restart_fields(restarts, putter(json));
  for (const api::RestartCount& each : restarts.by_cause) {
    json["byCause"].push_back(
        {{"role", role_name(each.role)}, {"cause", api::name(each.cause)}, {"count", each.count}});
  }
  for (const api::Replacement& each : restarts.replacements) {
    json["replacements"].push_back(
        {{"role", role_name(each.role)}, {"index", each.index}, {"count", each.count}});
  }
  return json;
}

api::Restarts restarts_from(const Json& json) {
  api::Restarts restarts;
  restart_fields(restarts, taker(json));
  for (const Json& each : list_at(json, {"byCause"})) {
    restarts.by_cause.push_back(
        {role_of(text_at(each, {"role"})), cause_of(text_at(each, {"cause"})), integer_at(each, {"count"})});
  }
  for (const Json& each : list_at(json, {"replacements"})) {
    restarts.replacements.push_back(
        {role_of(text_at(each, {"role"})), integer_at(each, {"index"}), integer_at(each, {"count"})});
  }
  return restarts;
}

Json to_json(const api::ServerStatus& server) {
  Json json = Json::object();
  server_fields(server, putter(json));
  for (const api::HotRow& row : server.hottest)
    json["hottest"].push_back({{"table", row.table}, {"id", row.id}, {"pulls", row.pulls}});
  return json;
}

api::ServerStatus server_from(const Json& json) {
  api::ServerStatus server;
  server_fields(server, taker(json));
  for (const Json& row : list_at(json, {"hottest"}))
    server.hottest.push_back({text_at(row, {"table"}), integer_at(row, {"id"}), integer_at(row, {"pulls"})});
  return server;
}

Json to_json(const api::StalenessStatus& staleness) {
  Json json = Json::object();
  staleness_fields(staleness, putter(json));
  if (!staleness.histogram.empty()) json["histogram"] = staleness.histogram;
  return json;
}

api::StalenessStatus staleness_from(const Json& json) {
  api::StalenessStatus staleness;
  staleness_fields(staleness, taker(json));
  for (const Json& count : list_at(json, {"histogram"})) staleness.histogram.push_back(integer_at(count, {}));
  return staleness;
}

Json to_json(const api::MemberStatus& member) {
  Json json = {{"role", role_name(member.role)}, {"index", member.index}, {"rank", member.rank}};
  member_fields(member, putter(json));
  if (member.server) json["server"] = to_json(*member.server);
  if (member.staleness) json["staleness"] = to_json(*member.staleness);
  if (member.gpu) {
    json["gpu"] = Json::object();
    gpu_fields(*member.gpu, putter(json["gpu"]));
  }
  return json;
}

api::MemberStatus member_from(const Json& json) {
  api::MemberStatus member;
  member.role = role_of(text_at(json, {"role"}));
  take(json, "index", member.index);
  member.rank = at(json, {"rank"}).is_number_integer() ? integer_at(json, {"rank"}) : -1;
  member_fields(member, taker(json));
  if (at(json, {"server"}).is_object()) member.server = server_from(json["server"]);
  if (at(json, {"staleness"}).is_object()) member.staleness = staleness_from(json["staleness"]);
  if (at(json, {"gpu"}).is_object()) gpu_fields(member.gpu.emplace(), taker(json["gpu"]));
  return member;
}

Json to_json(const api::Observation& seen) {
  Json json = {{"kind", api::name(seen.kind)}};
  put(json, "detail", seen.detail);
  return json;
}

api::Observation observation_from(const Json& json) {
  using enum api::ObservationKind;
  return {named(text_at(json, {"kind"}), kRefused, kSaid), text_at(json, {"detail"})};
}

Json to_json(const api::Fault& fault) {
  Json json = {{"kind", api::name(fault.kind)},
               {"role", role_name(fault.role)},
               {"index", fault.index},
               {"rank", fault.rank},
               {"cause", api::name(fault.cause)}};
  fault_fields(fault, putter(json));
  for (const api::Observation& seen : fault.evidence) json["evidence"].push_back(to_json(seen));
  for (const api::Victim& victim : fault.victims) {
    Json each = to_json(victim.seen);
    each["role"] = role_name(victim.role);
    each["index"] = victim.index;
    put(each, "exitCode", victim.exit_code);
    put(each, "signal", victim.signal);
    if (victim.same) each["same"] = true;
    json["victims"].push_back(std::move(each));
  }
  if (fault.more_victims > 0) json["moreVictims"] = fault.more_victims;
  return json;
}

api::Fault fault_from(const Json& json) {
  api::Fault fault;
  using enum api::FaultKind;
  fault.kind = named(text_at(json, {"kind"}), kDeleted, kFailed);
  fault.role = role_of(text_at(json, {"role"}));
  fault.index = static_cast<int>(integer_at(json, {"index"}));
  fault.rank = at(json, {"rank"}).is_number_integer() ? static_cast<int>(integer_at(json, {"rank"})) : -1;
  fault.cause = cause_of(text_at(json, {"cause"}));
  fault_fields(fault, taker(json));
  for (const Json& each : list_at(json, {"evidence"})) fault.evidence.push_back(observation_from(each));
  for (const Json& each : list_at(json, {"victims"})) {
    api::Victim victim{role_of(text_at(each, {"role"})), static_cast<int>(integer_at(each, {"index"})),
                       observation_from(each)};
    take(each, "exitCode", victim.exit_code);
    take(each, "signal", victim.signal);
    victim.same = at(each, {"same"}) == true;
    fault.victims.push_back(std::move(victim));
  }
  fault.more_victims = static_cast<int>(integer_at(json, {"moreVictims"}));
  return fault;
}

}  // namespace

Json status_to_json(const api::Status& status) {
  Json json = {{"phase", api::name(status.phase)}};
  status_fields(status, putter(json));
  for (const api::Condition& condition : status.conditions) {
    if (api::is_our_condition(condition.type)) json["conditions"].push_back(to_json(condition));
  }
  for (const api::ReplicaStatus& each : status.replica_statuses)
    json["replicaStatuses"].push_back(to_json(each));
  Json restarts = to_json(status.restarts);
  if (!status.conditions.empty()) restarts["total"] = status.restarts.total;  // a printer column: 0 shows
  if (!restarts.empty()) json["restarts"] = std::move(restarts);
  if (status.view.generation.value > 0) {
    json["view"] = {{"generation", status.view.generation.value}, {"size", status.view.size}};
  }
  if (status.progress != api::Progress()) {
    json["progress"] = Json::object();
    progress_fields(status.progress, putter(json["progress"]));
  }
  for (const api::MemberStatus& member : status.members) json["members"].push_back(to_json(member));
  if (status.fault) json["fault"] = to_json(*status.fault);
  return json;
}

api::Status status_from_json(const Json& json) {
  api::Status status;
  status.phase = named(text_at(json, {"phase"}), api::Phase::kSuspended, api::Phase::kPending);
  status_fields(status, taker(json));
  for (const Json& each : list_at(json, {"conditions"})) status.conditions.push_back(condition_from(each));
  for (const Json& each : list_at(json, {"replicaStatuses"}))
    status.replica_statuses.push_back(replicas_from(each));
  status.restarts = restarts_from(at(json, {"restarts"}));
  status.view.generation.value = static_cast<std::uint64_t>(integer_at(json, {"view", "generation"}));
  status.view.size = integer_at(json, {"view", "size"});
  progress_fields(status.progress, taker(at(json, {"progress"})));
  for (const Json& each : list_at(json, {"members"})) status.members.push_back(member_from(each));
  if (at(json, {"fault"}).is_object()) status.fault = fault_from(json["fault"]);
  return status;
}

}  // namespace paceline::kube
