#include "controller/reconcile/job_snapshot.h"

#include <utility>

namespace paceline::reconcile {

namespace {

// No progress is expected of it.
bool waits(const api::Status& status) {
  return status.phase == api::Phase::kPending || status.phase == api::Phase::kSuspended;
}

}  // namespace

JobSnapshot next_snapshot(const JobSnapshot* before, api::TrainingJob job, WallTime now) {
  JobSnapshot next{.job = std::move(job), .progressed = now};
  const api::Status& status = next.job.status;
  if (!status.last_checkpoint.empty()) next.checkpoint = now;
  if (before == nullptr) return next;
  const api::Status& last = before->job.status;
  if (last.progress.step == status.progress.step && !waits(last)) next.progressed = before->progressed;
  if (last.last_checkpoint == status.last_checkpoint && !waits(last)) next.checkpoint = before->checkpoint;
  return next;
}

}  // namespace paceline::reconcile
