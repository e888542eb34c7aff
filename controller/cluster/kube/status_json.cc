#include "controller/cluster/kube/status_json.h"

#include "controller/cluster/kube/field_json.h"

namespace paceline::kube {

Json status_to_json(const api::Status& status) {
  api::Status ours = status;
  api::keep_our_conditions(ours);
  Json json = fields_to_json(ours);
  if (!ours.conditions.empty()) json["restarts"]["total"] = ours.restarts.total;  // a printer column: 0 shows
  return json;
}

api::Status status_from_json(const Json& json) {
  api::Status status;
  fields_from_json(json, status);
  return status;
}

}  // namespace paceline::kube
