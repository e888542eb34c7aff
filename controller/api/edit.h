#pragma once

// Which edits of a job are accepted. Pure. crds/trainingjobs.yaml holds the same rules for the API server.
//
// May change at any time: runPolicy but for managedBy and schedulingPolicy.queue; worker's replicas, between
// the old job's minReplicas and maxReplicas. The pods' templates, and the queue, may change while the job is
// suspended, or in the edit that suspends or resumes it. All else stays as it was created.

#include <string>
#include <vector>

#include "controller/api/types.h"

namespace paceline::api {

struct EditError {
  std::string path;
  std::string problem;  // what changed, and what is allowed
  bool operator==(const EditError&) const = default;
};

// Empty: the edit is accepted. REQUIRES: both jobs are valid (parse.h). Sorted by path.
std::vector<EditError> edit_errors(const TrainingJob& old_job, const TrainingJob& new_job);

}  // namespace paceline::api
