// Members that are gone and that the others go on without: said once, and what is left of their pods goes.
// (One that is frozen still holds its connections.)

#include <algorithm>

#include "base/text.h"
#include "controller/plan/pods.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

void rule_lost(const Observed& observed, Plan& plan) {
  if (!observed.report) return;
  for (const LostMember& lost : observed.report->lost) {
    const cluster::Pod* pod = find_pod(observed, lost.role, lost.index);
    if (pod != nullptr && !pod->ended() && !pod->deleting)
      plan.actions.push_back(
          DeletePod{pod->spec.ns, pod->spec.name, pod->uid, observed.limits.failure_grace, lost.message});
    const bool known = std::ranges::any_of(observed.job.status.members, [&](const api::MemberStatus& each) {
      return each.role == lost.role && each.index == lost.index && each.phase == kLostPhase &&
             (pod == nullptr || each.pod == pod->spec.name);
    });
    if (known || is_terminal(plan.status.phase)) continue;
    plan.status.reason = "MemberLost";
    plan.status.message = str_cat(lost.message, "; the others go on without it");
    plan.status_reason = plan.status.message;
    record_event(observed, true, "MemberLost", plan.status.message,
                 str_cat(slot_name(lost.role, lost.index), " is lost, and not needed"), plan);
  }
}

}  // namespace paceline::plan
