// Members that are gone and that the others go on without: in a ring another one takes the place (elastic.h);
// else, or where that helps no more, it is said once, and what is left of their pods goes. (One that is
// frozen still holds its connections.) The status says so of one whose pod is gone, too: another controller's
// coordinator would wait for it.

#include "base/text.h"
#include "controller/diagnosis/diagnosis.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/faults.h"
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
  if (!observed.report || training_finished(observed)) return;
  for (const LostMember& lost : observed.report->lost) {
    const api::Fault& fault = lost.fault;
    if (is_terminal(plan.status.phase)) return;
    const auto& replica = api::replica_spec(observed.job, fault.role);
    if (!replica || fault.index >= replica->places()) continue;  // its place is gone
    const bool given_up = is_given_up(observed, lost);
    if (has_successor(observed.job, fault.role) && !given_up) {
      replace_lost(observed, lost, plan);
      continue;
    }
    if (awaits_end(observed, lost, plan)) continue;
    const api::Fault whole = diagnosis::diagnose(place_of(observed, fault.role, fault.index), fault);
    const std::string message = diagnosis::message_of(whole);
    const cluster::Pod* pod = find_pod(observed, fault.role, fault.index);
    if (pod != nullptr && !pod->ended() && !pod->deleting)
      plan.actions.push_back(
          DeletePod{pod->spec.ns, pod->spec.name, pod->uid, observed.limits.failure_grace, message});
    const api::MemberStatus* last = last_status(observed, fault.role, fault.index);
    const bool known = last != nullptr && last->phase == kLostPhase;
    note_lost(observed, fault.role, fault.index, plan.status);
    if (known) continue;
    plan.status.reason = "MemberLost";
    plan.status.message = str_cat(
        message,
        given_up ? str_cat("; it was started ", kDataTries, " times in a row, and is not started again") : "",
        others_live(observed, fault.role, fault.index) ? "; the others go on without it" : "");
    const bool is_settled = !plan.status.fault || !plan.status.fault->provisional_since;
    if (is_settled) plan.status.fault = whole;
    plan.status_reason = plan.status.message;
    record_event(observed, true, "MemberLost", plan.status.message,
                 str_cat(member_name(fault.role, fault.index), " is lost, and not needed"), plan);
  }
}

}  // namespace paceline::plan
