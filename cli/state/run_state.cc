#include "cli/state/run_state.h"

#include "base/text.h"
#include "controller/cluster/kube/field_json.h"
#include "controller/cluster/kube/status_json.h"

namespace paceline::cli {

bool is_finished(const RunState& state) {
  return state.phase == "Succeeded" || state.phase == "Failed" || state.phase == "Stopped" ||
         state.phase == kUnknownPhase;
}

void note_all_gone(RunState& state) {
  for (api::MemberStatus& member : state.members) {
    if (member.phase != "lost" && member.phase != "left") member.phase = "gone";
  }
  for (api::ReplicaStatus& role : state.status.replica_statuses) role.active = role.ready = 0;
}

std::string to_json(const RunState& state, int indent) {
  kube::Json json = kube::Json::object();
  RunState::fields(kube::PutField{json, true}, state);
  json["status"] = kube::status_to_json(state.status);
  return json.dump(indent, ' ', false, kube::Json::error_handler_t::replace);
}

absl::StatusOr<RunState> parse_run_state(std::string_view text) {
  const absl::StatusOr<kube::Json> json = kube::parse_json(text);
  if (!json.ok()) return absl::InvalidArgumentError(str_cat("not a run's status: ", json.status().message()));
  if (!json->is_object()) return absl::InvalidArgumentError("a run's status must be a JSON object");
  RunState state;
  kube::fields_from_json(*json, state);
  state.status = kube::status_from_json(kube::at(*json, {"status"}));
  return state;
}

}  // namespace paceline::cli
