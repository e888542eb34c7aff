#pragma once

// Refusals of the API server in plain words, with what to do about them. Pure.

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "controller/cluster/kube/resources.h"

namespace paceline::jobs {

// The question that it refused.
struct Asked {
  std::string what;       // "list the jobs of namespace team-a"
  std::string_view verb;  // get, list, patch, ...: as in a role's rules
  kube::Resource resource = kube::kTrainingJobs;
  std::string_view subresource;  // "log"
  std::string ns;                // empty: all
};

// The same code and payloads; `cluster` says where ("https://10.0.0.1:6443, context dev of ...").
absl::Status api_error_text(const absl::Status& status, const Asked& asked, std::string_view cluster);

}  // namespace paceline::jobs
