#include "cli/state/run_state.h"

#include <concepts>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "controller/cluster/kube/status_json.h"

namespace paceline::cli {

namespace {

using Json = nlohmann::ordered_json;

// Each field once, with its key: both directions walk this list.
template <typename Visitor, typename State>
void visit(Visitor&& v, State& s) {
  v("name", s.name);
  v("job", s.job);
  v("namespace", s.ns);
  v("jobFile", s.job_file);
  v("phase", s.phase);
  v("reason", s.reason);
  v("message", s.message);
  v("ownerPid", s.owner_pid);
  v("generation", s.generation);
  v("step", s.step);
  v("totalSteps", s.total_steps);
  v("epoch", s.epoch);
  v("loss", s.loss);
  v("accuracy", s.accuracy);
  v("testLoss", s.test_loss);
  v("auc", s.auc);
  v("target", s.target);
  v("targetReached", s.target_reached);
  v("samplesPerSecond", s.samples_per_second);
  v("goodput", s.goodput);
  v("etaSeconds", s.eta_seconds);
  v("elapsedSeconds", s.elapsed_seconds);
  v("firstStepSeconds", s.first_step_seconds);
  v("targetSeconds", s.target_seconds);
  v("gradients", s.gradients);
  v("samples", s.samples);
  v("parameters", s.parameters);
  v("device", s.device);
  v("bytesExchanged", s.bytes_exchanged);
  v("weightsCheckedStep", s.weights_checked_step);
  v("checkpoint", s.checkpoint);
  v("model", s.model);
  v("folder", s.folder);
  v("created", s.created);
  v("finished", s.finished);
}

template <typename Visitor, typename State>
void visit_member(Visitor&& v, State& m) {
  v("pod", m.pod);
  v("name", m.name);
  v("pid", m.pid);
  v("node", m.node);
  v("phase", m.phase);
  v("step", m.step);
  v("inputMs", m.input_ms);
  v("computeMs", m.compute_ms);
  v("waitMs", m.wait_ms);
  v("transferMs", m.transfer_ms);
  v("updateMs", m.update_ms);
  v("stepMs", m.step_ms);
  v("bytesSent", m.bytes_sent);
  v("server", m.server);
  v("staleness", m.staleness);
  v("gpu", m.gpu);
}

template <typename Visitor>
void visit_parts(Visitor&& v, auto& s) requires requires {
  s.queue;
}
{
  v("load", s.load);
  v("bytesPerSecond", s.bytes_per_second);
  v("queue", s.queue);
  v("updates", s.updates);
  v("rows", s.rows);
  v("rowBytes", s.row_bytes);
  v("rowsEvicted", s.rows_evicted);
  v("hottest", s.hottest);
}

template <typename Visitor>
void visit_parts(Visitor&& v, auto& s) requires requires {
  s.dropped;
}
{
  v("applied", s.applied);
  v("dropped", s.dropped);
  v("mean", s.mean);
  v("max", s.max);
  v("waitSeconds", s.wait_seconds);
  v("histogram", s.histogram);
}

template <typename Visitor>
void visit_parts(Visitor&& v, auto& s) requires requires {
  s.xids;
}
{
  v("name", s.name);
  v("index", s.index);
  v("uuid", s.uuid);
  v("computeMs", s.compute_ms);
  v("updateMs", s.update_ms);
  v("utilization", s.utilization);
  v("memoryUtilization", s.memory_utilization);
  v("memoryUsedMib", s.memory_used_mib);
  v("memoryTotalMib", s.memory_total_mib);
  v("smClockMhz", s.sm_clock_mhz);
  v("mostSmClockMhz", s.most_sm_clock_mhz);
  v("memoryClockMhz", s.memory_clock_mhz);
  v("mostMemoryClockMhz", s.most_memory_clock_mhz);
  v("temperatureCelsius", s.temperature_celsius);
  v("powerWatts", s.power_watts);
  v("powerLimitWatts", s.power_limit_watts);
  v("slowdowns", s.slowdowns);
  v("correctedEccErrors", s.corrected_ecc_errors);
  v("uncorrectedEccErrors", s.uncorrected_ecc_errors);
  v("pcieReplays", s.pcie_replays);
  v("xids", s.xids);
  v("lastXid", s.last_xid);
}

template <typename Visitor>
void visit_parts(Visitor&& v, auto& s) requires requires {
  s.counted;
}
{
  v("counted", s.counted);
  v("workers", s.workers);
  v("samples", s.samples);
  v("batch", s.batch);
}

template <typename Visitor>
void visit_parts(Visitor&& v, auto& s) requires requires {
  s.pulls;
}
{
  v("table", s.table);
  v("id", s.id);
  v("pulls", s.pulls);
}

template <typename T>
concept Part = std::same_as<T, ServerState> || std::same_as<T, StalenessState> || std::same_as<T, GpuState> ||
    std::same_as<T, StepGradients>;

struct Write {
  Json& json;
  template <typename T>
  void operator()(const char* key, const T& value) const {
    json[key] = value;
  }
  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) const {
    if (value) (*this)(key, *value);
  }
  template <typename T>
  requires Part<T>
  void operator()(const char* key, const T& value) const {
    Json part = Json::object();
    visit_parts(Write{part}, value);
    json[key] = std::move(part);
  }
  void operator()(const char* key, const std::vector<HotRowState>& rows) const {
    if (rows.empty()) return;
    Json list = Json::array();
    for (const HotRowState& row : rows) visit_parts(Write{list.emplace_back(Json::object())}, row);
    json[key] = std::move(list);
  }
};

struct Read {
  const Json& json;
  template <typename T>
  void operator()(const char* key, T& value) const {
    if (const auto it = json.find(key); it != json.end() && !it->is_null()) it->get_to(value);
  }
  template <typename T>
  void operator()(const char* key, std::optional<T>& value) const {
    if (const auto it = json.find(key); it != json.end() && !it->is_null()) (*this)(key, value.emplace());
  }
  template <typename T>
  requires Part<T>
  void operator()(const char* key, T& value) const { visit_parts(Read{json.at(key)}, value); }
  void operator()(const char* key, std::vector<HotRowState>& rows) const {
    if (!json.contains(key)) return;
    for (const Json& row : json.at(key)) visit_parts(Read{row}, rows.emplace_back());
  }
};

}  // namespace

bool is_finished(const RunState& state) {
  return state.phase == "Succeeded" || state.phase == "Failed" || state.phase == "Stopped";
}

std::string to_json(const RunState& state, int indent) {
  Json json = Json::object();
  visit(Write{json}, state);
  json["members"] = Json::array();
  for (const MemberState& member : state.members) {
    Json one = Json::object();
    visit_member(Write{one}, member);
    json["members"].push_back(std::move(one));
  }
  json["status"] = kube::status_to_json(state.status);
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<RunState> parse_run_state(std::string_view text) {
  // Bad JSON and wrong types reach us as exceptions of the library.
  try {
    const Json json = Json::parse(text);
    if (!json.is_object()) return absl::InvalidArgumentError("a run's status must be a JSON object");
    RunState state;
    visit(Read{json}, state);
    if (const auto status = json.find("status"); status != json.end())
      state.status = kube::status_from_json(*status);
    if (const auto members = json.find("members"); members != json.end()) {
      for (const Json& one : *members) {
        if (!one.is_object())
          return absl::InvalidArgumentError("each of a run's members must be a JSON object");
        visit_member(Read{one}, state.members.emplace_back());
      }
    }
    return state;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(str_cat("not a run's status: ", error.what()));
  }
}

}  // namespace paceline::cli
