// The leader (the chief, or worker 0) decides the job's success; the others then end by themselves within
// Limits::finish_grace, or go with what is left of a job that has succeeded. An evaluator's last look is
// waited for, as long as the coordinator waits for it, and no longer than the grace. A failure after that
// costs a warning, not the job: the model is there.

#include <algorithm>

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pod_observations.h"
#include "controller/plan/pods.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

namespace {

// Since when training is over: by the report, or by when the leader was seen to have ended, or, of one that
// has finished by the status and runs yet, by when it was first seen to run; of one that is gone, by when its
// coordinator began. While the report says that the leader has finished and others leave, it is not over:
// their coordinator counts their time.
Duration since_finish(const Observed& observed) {
  if (observed.report && observed.report->state == JobState::kFinished) return observed.report->in_state;
  const Slot leader = leader_slot(observed.job);
  const cluster::Pod* pod = find_pod(observed, leader.role, leader.index);
  if (reported_finished(observed) && (pod == nullptr || !pod->ended())) return Duration::zero();
  if (pod == nullptr && observed.report) return observed.report->in_state;
  if (pod == nullptr) return observed.limits.finish_grace;  // nobody knows any more
  return seen_for(observed, *pod);
}

std::string success_message(const Observed& observed) {
  if (!reported_finished(observed)) return "the leader's process ended well";
  // A coordinator that began when training was over has seen nothing of it.
  const api::Progress &told = observed.report->progress, &kept = observed.job.status.progress;
  const api::Progress progress = finished(observed.job, told.step > 0 ? told : kept);
  std::string message = str_cat("training finished after ", pluralize(progress.step, "step", "steps"));
  if (progress.test_accuracy) message += str_cat(", test accuracy ", *progress.test_accuracy);
  if (progress.test_auc) message += str_cat(", test AUC ", *progress.test_auc);
  for (const cluster::Pod& pod : observed.pods) {
    if (has_failed(observed, pod)) {
      message +=
          str_cat("; afterwards ", member_name(pod.spec.role, pod.spec.index), " ", diagnosis::end_of(pod));
    }
  }
  return message;
}

// Those who trained have ended, and an evaluator may have their last checkpoint yet to evaluate: the
// coordinator tells it that this is the last, and says Finished once it has, is gone, or takes too long.
bool evaluates_the_last(const Observed& observed) {
  if (!observed.job.spec.training || !observed.report || is_final(observed.report->state)) return false;
  return std::ranges::any_of(observed.pods, [](const cluster::Pod& pod) {
    return pod.spec.role == Role::kEvaluator && pod.phase == cluster::PodPhase::kRunning && !pod.deleting;
  });
}

// All processes ended with code 0, or when their work was done, but the coordinator does not say that
// training finished: its last words may be under way.
void ended_without_finishing(const Observed& observed, Plan& plan) {
  const std::vector<Slot> slots = desired_slots(observed.job);
  Duration quiet = Duration::max();  // since the last one ended
  for (const Slot& slot : slots) {
    if (!api::is_member(observed.job, slot.role)) continue;
    const bool lost = is_lost(observed, slot.role, slot.index);
    if (lost && has_successor(observed.job, slot.role)) return;
    if (lost) continue;
    const cluster::Pod* pod = find_pod(observed, slot.role, slot.index);
    const bool ended = pod == nullptr || pod->ended();
    if (!ended) return;
    const bool well = pod != nullptr && pod->phase == cluster::PodPhase::kSucceeded;
    if (!well && !has_finished(observed, slot.role, slot.index)) return;
    if (pod == nullptr) continue;
    quiet = std::min(quiet, seen_for(observed, *pod));
  }
  const Duration left = observed.limits.report_grace - quiet;
  if (left > Duration::zero()) return requeue(left, plan);
  end_job(observed, api::Phase::kFailed, "NotFinished",
          str_cat("all pods exited with code 0, but training stood at step ", observed.report->progress.step,
                  " and did not finish; does the pods' command train this job?"),
          plan);
  const cluster::Pod* leader = find_pod(observed, slots.front().role, slots.front().index);
  if (leader != nullptr) plan.failed_pod = *leader;
  clean_pods(observed, observed.limits.failure_grace, "the job has failed", plan);
}

}  // namespace

void rule_success(const Observed& observed, Plan& plan) {
  if (!training_finished(observed)) {
    if (observed.report) ended_without_finishing(observed, plan);
    return;
  }
  const auto end = [&] {
    end_job(observed, api::Phase::kSucceeded, "TrainingFinished", success_message(observed), plan);
    clean_pods(observed, observed.limits.stop_grace, "the job has succeeded", plan);
  };
  const bool running = std::ranges::any_of(
      observed.pods, [&](const cluster::Pod& pod) { return !pod.ended() && is_needed(observed, pod); });
  if (!running && !evaluates_the_last(observed)) return end();
  const Slot leader = leader_slot(observed.job);
  plan.leader_finished = observed.report && !reported_finished(observed) &&
                         find_pod(observed, leader.role, leader.index) == nullptr;
  const Duration left = observed.limits.finish_grace - since_finish(observed);
  if (left > Duration::zero()) return requeue(left, plan);
  end();
}

}  // namespace paceline::plan
