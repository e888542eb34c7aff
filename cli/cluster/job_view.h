#pragma once

// A TrainingJob object, and its pods, as what people look at: the same values that a local run has. Pure.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/state/run_state.h"
#include "cli/view/fit_columns.h"
#include "controller/api/types.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/pod.h"
#include "controller/jobs/kube_jobs.h"

namespace paceline::cli {

struct JobView {
  std::string ns, name, uid, resource_version;
  std::int64_t generation = 0;
  bool deleting = false, deleted = false;  // deleted: a history alone has it
  bool seen = false;                       // a controller has written a status
  bool suspended = false;
  std::string managed_by, queue;
  std::int64_t wanted = 0, ready = 0;  // pods
  std::optional<WallTime> created;
  api::Status status;
  std::optional<RunState> run;  // of this machine's: all that is known of it
};
JobView read_job(const kube::Json& object);

inline bool has_ended(const JobView& job) {
  if (job.run) return is_finished(*job.run);
  return job.status.phase == api::Phase::kSucceeded || job.status.phase == api::Phase::kFailed;
}

// Why checkpoints of a job that goes on can't be written; null: they are, as far as anybody has tried.
const api::Condition* failing_saves(const JobView& job);

// "worker-2, node-1, Running": the newest attempt's pod of each place, by role and index; `attempt` chooses
// an earlier one. Not those that were to take over from a slow member, and have not.
std::vector<kube::SlimPod> present_pods(const std::vector<kube::SlimPod>& pods, const api::Status& status);

// For the live view, the listing and the summary. `spec` gives what only the spec knows (null: it can't be
// parsed). A member whose pod is gone is known from the status alone, and its phase says so.
RunState run_state_of(const JobView& job, const api::TrainingJob* spec,
                      const std::vector<kube::SlimPod>& pods, WallTime now);

// The listing's columns and rows; `all_namespaces` adds a column in front.
std::vector<Column> job_columns(bool all_namespaces, bool wide);
std::vector<Row> job_rows(const std::vector<JobView>& jobs, bool wide, bool all_namespaces, WallTime now);

using jobs::printable;
kube::Json list_of(std::vector<kube::Json> objects);

}  // namespace paceline::cli
