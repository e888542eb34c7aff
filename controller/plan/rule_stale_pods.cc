// Pods of earlier attempts go; those of the last one that have ended stay for their logs. Who has not been
// asked to end until now leaves in order: the status of a suspension, or of another size, was written, but
// what should follow was not done.

#include "base/text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

void rule_stale_pods(const Observed& observed, Plan& plan) {
  for (const cluster::Pod& pod : observed.pods) {
    const std::int64_t wanted = wanted_attempt(observed.job, pod.spec.role, pod.spec.index);
    const bool kept = pod.all_ended() && pod.spec.attempt + 1 >= wanted;
    if (pod.deleting || pod.spec.attempt >= wanted || kept) continue;
    plan.actions.push_back(
        DeletePod{pod.spec.ns, pod.spec.name, pod.uid, grace_of(observed, pod, observed.limits.stop_grace),
                  str_cat("it is of attempt ", pod.spec.attempt, ", and the job is at ", wanted)});
  }
}

}  // namespace paceline::plan
