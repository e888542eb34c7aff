// runPolicy.activeDeadlineSeconds counts from the job's start (its first pods), whatever happened since.

#include "base/text.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

bool rule_deadline(const Observed& observed, Plan& plan) {
  const auto& seconds = observed.job.spec.run_policy.active_deadline_seconds;
  if (!seconds || !plan.status.start_time || training_finished(observed)) return false;
  const Duration left = *plan.status.start_time + std::chrono::seconds(*seconds) - observed.now;
  if (left > Duration::zero()) {
    requeue(left, plan);
    return false;
  }
  const std::string message =
      str_cat("the job was still running after its ", *seconds, " s (spec.runPolicy.activeDeadlineSeconds)");
  end_job(observed, api::Phase::kFailed, "DeadlineExceeded", message, plan);
  delete_running_pods(observed, observed.limits.failure_grace, message, plan);
  return true;
}

}  // namespace paceline::plan
