#pragma once

// A TrainingJob's status, to the JSON of its status sub-resource and back. Pure. Fields that are empty or
// zero are left out; reading never fails: what is missing or of another type is as in a new Status. All
// conditions are read, but only ours are written: whoever applies a field owns it.

#include "controller/api/types.h"
#include "controller/cluster/kube/json.h"

namespace paceline::kube {

Json status_to_json(const api::Status& status);
api::Status status_from_json(const Json& json);

}  // namespace paceline::kube
