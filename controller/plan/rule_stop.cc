// The user stops the job, or deletes it: its pods go, and a job that had not ended has failed with reason
// Stopped. A job whose training is over is let end well.

#include "controller/plan/rules.h"

namespace paceline::plan {

bool rule_stop(const Observed& observed, Plan& plan) {
  if (observed.stop == Stop::kNo && !observed.deleted) return false;
  const bool now = observed.stop == Stop::kNow;
  const std::string reason = now                ? "the user wants the job to end at once"
                             : observed.deleted ? "the job is being deleted"
                                                : "the user stops the job";
  if (training_finished(observed)) {
    end_job(observed, api::Phase::kSucceeded, "TrainingFinished",
            "training was over when the job was stopped", plan);
  }
  end_job(observed, api::Phase::kFailed, "Stopped", reason, plan);
  delete_running_pods(observed, now ? Duration::zero() : observed.limits.stop_grace, reason, plan);
  return true;
}

}  // namespace paceline::plan
