// Pods of earlier attempts go; those of the last one that have ended stay for their logs. Who has not been
// asked to end until now leaves in order: the status of a suspension, or of another size, was written, but
// what should follow was not done.

#include <utility>

#include "base/text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/rules.h"
#include "controller/plan/stragglers.h"

namespace paceline::plan {

namespace {

// Pods that were to take over from a slow member, and are not to any more.
void delete_idle_successors(const Observed& observed, Plan& plan) {
  const bool ends = is_terminal(plan.status.phase) || plan.status.phase == api::Phase::kSuspended;
  const std::optional<Incarnation> to = ends ? std::nullopt : handover_of(observed.job);
  for (const cluster::Pod& pod : observed.pods) {
    const auto& [role, index] = std::pair(pod.spec.role, pod.spec.index);
    const bool next =
        api::is_member(observed.job, role) && pod.spec.attempt > wanted_attempt(observed.job, role, index);
    const bool kept = pod.all_ended() && pod.spec.attempt == newest_number(observed.job, role, index);
    if (!next || pod.deleting || kept || to == Incarnation{role, index, pod.spec.attempt}) continue;
    plan.actions.push_back(DeletePod{pod.spec.ns, pod.spec.name, pod.uid, observed.limits.stop_grace,
                                     "it is not to take over any more"});
  }
}

}  // namespace

void rule_stale_pods(const Observed& observed, Plan& plan) {
  for (const cluster::Pod& pod : observed.pods) {
    const std::int64_t wanted = wanted_attempt(observed.job, pod.spec.role, pod.spec.index);
    const bool kept = pod.all_ended() && pod.spec.attempt + 1 >= wanted;
    if (pod.deleting || pod.spec.attempt >= wanted || kept) continue;
    plan.actions.push_back(
        DeletePod{pod.spec.ns, pod.spec.name, pod.uid, grace_of(observed, pod, observed.limits.stop_grace),
                  str_cat("it is of attempt ", pod.spec.attempt, ", and the job is at ", wanted)});
  }
  delete_idle_successors(observed, plan);
}

}  // namespace paceline::plan
