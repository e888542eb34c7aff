// A job that has ended gets no pods; those that are left go as cleanPodPolicy says, and the job itself
// ttlSecondsAfterFinished later.

#include "base/text.h"

#include "controller/plan/rules.h"

namespace paceline::plan {

bool rule_finished(const Observed& observed, Plan& plan) {
  if (!is_terminal(plan.status.phase)) return false;
  clean_pods(observed, observed.limits.failure_grace, "the job has ended", plan);
  const auto& ttl = observed.job.spec.run_policy.ttl_seconds_after_finished;
  if (!ttl || !plan.status.completion_time) return true;
  const Duration left = *plan.status.completion_time + std::chrono::seconds(*ttl) - observed.now;
  if (left > Duration::zero()) {
    requeue(left, plan);
  } else {
    plan.actions.push_back(
        DeleteJob{observed.job.metadata.ns, observed.job.metadata.name, observed.job_uid,
                  str_cat("it ended ", *ttl, " s ago (spec.runPolicy.ttlSecondsAfterFinished)")});
  }
  return true;
}

}  // namespace paceline::plan
