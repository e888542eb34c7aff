// Members that are gone and that the others go on without: said once, and what is left of their pods goes.
// (One that is frozen still holds its connections.) The status says so of one whose pod is gone, too: another
// controller's coordinator would wait for it.

#include "base/text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/pods.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

namespace {

void note_lost(const Observed& observed, Role role, int index, api::Status& status) {
  const std::string name = pod_name(observed.job, role, index, wanted_attempt(observed.job, role, index));
  for (api::MemberStatus& member : status.members) {
    if (member.pod == name) member.phase = kLostPhase;
  }
}

}  // namespace

void rule_lost(const Observed& observed, Plan& plan) {
  if (!observed.report) return;
  for (const LostMember& lost : observed.report->lost) {
    const cluster::Pod* pod = find_pod(observed, lost.role, lost.index);
    if (pod != nullptr && !pod->ended() && !pod->deleting)
      plan.actions.push_back(
          DeletePod{pod->spec.ns, pod->spec.name, pod->uid, observed.limits.failure_grace, lost.message});
    const api::MemberStatus* last = last_status(observed, lost.role, lost.index);
    const bool known = last != nullptr && last->phase == kLostPhase;
    note_lost(observed, lost.role, lost.index, plan.status);
    if (known || is_terminal(plan.status.phase)) continue;
    plan.status.reason = "MemberLost";
    plan.status.message = str_cat(lost.message, "; the others go on without it");
    plan.status_reason = plan.status.message;
    record_event(observed, true, "MemberLost", plan.status.message,
                 str_cat(member_name(lost.role, lost.index), " is lost, and not needed"), plan);
  }
}

}  // namespace paceline::plan
