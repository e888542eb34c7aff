// Servers and evaluators outside the ring are auxiliary: none of them lets the job fail or succeed. One that
// ends is replaced by its own restart policy (with all servers, or all members, as its restartScope says), at
// most backoffLimit times where that was its fault; they go when the leader has decided the job
// (rule_success). Each failure is told, once its status is written; but not of a pod that was deleted while
// it ran: who deleted it knows.

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/faults.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart.h"
#include "controller/plan/restart_budget.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

namespace {

// Since all pods began together.
std::int64_t replaced_before(const Observed& observed, const cluster::Pod& pod) {
  return wanted_attempt(observed.job, pod.spec.role, pod.spec.index) -
         observed.job.status.restarts.full_attempt;
}

bool is_left(const Observed& observed, const cluster::Pod& pod) {
  const auto& all = observed.job.status.restarts.replacements;
  const auto place = std::ranges::find_if(all, [&](const api::Replacement& each) {
    return each.role == pod.spec.role && each.index == pod.spec.index;
  });
  const std::vector<api::RestartTime> none;
  return !restart_budget(observed.job.spec.run_policy, place == all.end() ? none : place->recent,
                         replaced_before(observed, pod), observed.now)
              .is_used_up();
}

bool is_replaced(const Observed& observed, const cluster::Pod& pod, api::RestartCause cause) {
  const auto& replica = api::replica_spec(observed.job, pod.spec.role);
  if (!replica || pod.spec.index >= replica->replicas) return false;
  const bool well = pod.phase == cluster::PodPhase::kSucceeded;
  if (well) return replica->restart_policy == api::RestartPolicy::kAlways;
  const bool left = api::is_charged(cause) ? is_left(observed, pod)
                                           : replaced_before(observed, pod) < observed.limits.disruptions;
  return left && may_restart(replica->restart_policy, cause);
}

bool is_ended_auxiliary(const Observed& observed, const cluster::Pod& pod) {
  if (api::is_member(observed.job, pod.spec.role) || !pod.ended()) return false;
  return !pod.deleting || has_failed_auxiliary(observed, pod);
}

// Once: the status that follows says that it has failed.
bool is_news(const Observed& observed, const cluster::Pod& pod) {
  const api::MemberStatus* last = last_status(observed, pod.spec.role, pod.spec.index);
  return last == nullptr || last->pod != pod.spec.name ||
         last->phase != cluster::pod_phase_name(cluster::PodPhase::kFailed);
}

// `again`: what is said of its next pod; empty: none comes.
void report_end(const Observed& observed, const cluster::Pod& pod, const api::Fault& fault,
                const std::string& again, Plan& plan) {
  const bool replaced = !again.empty();
  const bool evaluator = fault.role == Role::kEvaluator;
  const char* const reason = replaced ? (evaluator ? kEvaluatorReplaced : kServerReplaced)
                                      : (evaluator ? kEvaluatorLost : kServerLost);
  const std::string slot = member_name(fault.role, fault.index);
  const bool failed = pod.phase == cluster::PodPhase::kFailed;
  record_event(observed, failed, reason,
               str_cat(diagnosis::message_of(fault),
                       replaced ? again : "; it is not started again, and the job goes on"),
               str_cat(slot, replaced ? " is replaced" : " is left as it is"), plan);
}

// It has started again with another one of its role, in this pass.
bool has_next(const Observed& observed, const api::Restarts& restarts, const cluster::Pod& pod) {
  return std::ranges::any_of(restarts.replacements, [&](const api::Replacement& each) {
    return each.role == pod.spec.role && each.index == pod.spec.index &&
           observed.job.status.restarts.full_attempt + each.count > pod.spec.attempt;
  });
}

// Its end is all members'.
bool ends_all(const Observed& observed, const cluster::Pod& pod) {
  return pod.phase == cluster::PodPhase::kFailed &&
         api::restart_scope(observed.job, pod.spec.role) == api::RestartScope::kJob;
}

// The places that start again with this one have their next numbers; the longest of their back-offs.
Duration take_next_numbers(const Observed& observed, const cluster::Pod& pod, api::RestartCause cause,
                           Plan& plan) {
  const bool failed = pod.phase == cluster::PodPhase::kFailed;
  const std::vector<int> alone{pod.spec.index};
  Duration wait{};
  for (const int index : failed ? places_in_scope(observed.job, pod.spec.role, pod.spec.index) : alone) {
    wait = std::max(wait, take_next_number(observed, pod.spec.role, index, plan));
    if (!failed || !api::is_charged(cause)) continue;
    note_restart(observed.job.spec.run_policy, observed.now,
                 replacement_of(plan.status.restarts, pod.spec.role, index).recent);
  }
  return wait;
}

}  // namespace

void report_lost_auxiliary(const Observed& observed, Plan& plan) {
  for (const cluster::Pod& pod : observed.pods) {
    const cluster::PodSpec& spec = pod.spec;
    if (!is_ended_auxiliary(observed, pod) || pod.phase != cluster::PodPhase::kFailed) continue;
    if (!is_news(observed, pod) || has_finished(observed, spec.role, spec.index)) continue;
    const api::Fault fault = fault_of(observed, pod);
    if (!is_replaced(observed, pod, fault.cause)) report_end(observed, pod, fault, "", plan);
  }
}

bool restart_by_auxiliary(const Observed& observed, Plan& plan) {
  for (const cluster::Pod& pod : observed.pods) {
    if (!is_ended_auxiliary(observed, pod) || !ends_all(observed, pod)) continue;
    api::Fault fault = fault_of(observed, pod);
    if (!is_replaced(observed, pod, fault.cause)) continue;
    take_next_numbers(observed, pod, fault.cause, plan);
    begin_attempt(observed, fault.role, fault.cause, api::name(fault.cause), diagnosis::message_of(fault),
                  observed.limits.failure_grace, plan);
    plan.failed_pod = pod;
    plan.status.fault = std::move(fault);
    return true;
  }
  return false;
}

void rule_auxiliary(const Observed& observed, Plan& plan) {
  if (training_finished(observed)) return;
  report_lost_auxiliary(observed, plan);
  for (const cluster::Pod& pod : observed.pods) {
    if (!is_ended_auxiliary(observed, pod)) continue;
    const api::Fault fault = fault_of(observed, pod);
    if (!is_replaced(observed, pod, fault.cause)) continue;
    if (ends_all(observed, pod) || has_next(observed, plan.status.restarts, pod)) continue;
    const Duration wait = take_next_numbers(observed, pod, fault.cause, plan);
    count_restart(plan.status.restarts, pod.spec.role, fault.cause);
    report_end(observed, pod, fault, str_cat("; it is started again", after(wait)), plan);
    requeue(Duration::zero(), plan);
  }
}

}  // namespace paceline::plan
