#pragma once

// Which edits of a job are accepted. Pure. crds/trainingjobs.yaml holds the same rules for the API server.
//
// May change at any time: stragglers; runPolicy but for managedBy and schedulingPolicy.queue; worker's
// replicas, from minReplicas (absent: 1) to maxReplicas (absent: as many as can be linked to one another), in
// a job that has one of the two: the bounds do not follow replicas, so that a job may go back to a size that
// it had. The pods' templates, and the queue, may change while the job is suspended, or in the edit that
// suspends or resumes it. All else stays as it was created.

#include <cstdint>
#include <string>
#include <vector>

#include "controller/api/types.h"

namespace paceline::api {

struct EditError {
  std::string path;
  std::string problem;  // what changed, and what is allowed
  bool operator==(const EditError&) const = default;
};

// How many replicas of a role an edit may ask for. REQUIRES: the job has the role.
struct ReplicaRange {
  std::int64_t min = 0, max = 0;
  bool holds(std::int64_t replicas) const { return replicas >= min && replicas <= max; }
  bool operator==(const ReplicaRange&) const = default;
};
ReplicaRange allowed_replicas(const TrainingJob& job, Role role);
// The same for people: "1 to 4 (minReplicas, maxReplicas)", "1 to 255 (minReplicas, no maxReplicas)".
std::string allowed_replicas_text(const TrainingJob& job, Role role);

// Empty: the edit is accepted. REQUIRES: both jobs are valid (parse.h). Sorted by path.
std::vector<EditError> edit_errors(const TrainingJob& old_job, const TrainingJob& new_job);

}  // namespace paceline::api
