#pragma once

// A TrainingJob object's JSON to what controller/api makes of it. Pure.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "controller/api/parse.h"
#include "controller/cluster/kube/json.h"

namespace paceline::kube {

// Without kubectl's last-applied-configuration, which is a copy of the object.
api::Metadata job_metadata(const Json& object);

// Its spec by the parser's rules; what the API server adds to an object is not looked at. Lines and columns
// of the diagnostics mean nothing.
api::Parsed parse_job(const Json& object, const api::Metadata& metadata);

// All errors in one line, at most kMaxSpecErrorBytes.
inline constexpr std::size_t kMaxSpecErrorBytes = 2000;
std::string errors_of(const std::vector<api::Diagnostic>& diagnostics);

// Each role's template as JSON, as its user wrote it.
std::map<Role, std::string> pod_templates_of(const Json& object);

}  // namespace paceline::kube
