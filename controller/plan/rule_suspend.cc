// spec.runPolicy.suspend, as batch/v1 has it: a suspended job has no pods; its pods are asked to end and take
// a checkpoint. A resumed job begins a new attempt, and activeDeadlineSeconds counts anew. Training that is
// over is let end well.

#include <algorithm>

#include "base/text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/restart.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

bool rule_suspend(const Observed& observed, Plan& plan) {
  api::Status& status = plan.status;
  if (!observed.job.spec.run_policy.suspend) {
    if (status.phase == api::Phase::kSuspended)
      enter_phase(observed, api::Phase::kStarting, "Resumed", "the job is resumed", plan);
    return false;
  }
  if (training_finished(observed)) return false;
  if (status.phase != api::Phase::kSuspended) {
    const bool begun = status.restarts.size > 0 || !observed.pods.empty();
    if (begun) skip_to_next_attempt(observed.job, status.restarts);
    status.start_time.reset();
    // Once they have left, rule_status() says where they stood (suspension.h).
    enter_phase(observed, api::Phase::kSuspended, "Suspended",
                str_cat("spec.runPolicy.suspend is true: ",
                        begun ? "the members save a checkpoint and leave" : "no pods are made",
                        what_is_lost(observed)),
                plan);
    plan.stop_members = StopMembers{"the job is suspended"};
  }
  delete_running_pods(observed, observed.limits.stop_grace, "the job is suspended", plan);
  return true;
}

}  // namespace paceline::plan
