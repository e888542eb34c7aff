// A member fell silent, and its pod ran as far as anybody knew: a process that hangs, or a node that died.
// The heartbeats stop within seconds; that its node is lost shows when Kubernetes takes condition Ready from
// the pod (40 to 50 s later), or else when it evicts it (300 s after that). So the restart counts as Silent
// at first, and is counted anew when its pod, which is to be deleted and stays where no kubelet does it,
// shows whose fault it was. Where it ends, or goes, without a word of that, it stays the job's own.
//
// A job that may have no more restarts waits for this, without pods, at most Limits::settle_time, before it
// fails.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "controller/diagnosis/diagnosis.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart.h"
#include "controller/plan/restart_budget.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

namespace {

const cluster::Pod* find_pod(const Observed& whole, const std::string& name) {
  const auto found =
      std::ranges::find_if(whole.pods, [&](const cluster::Pod& pod) { return pod.spec.name == name; });
  return found == whole.pods.end() ? nullptr : &*found;
}

// The restart that began at `since` is counted anew where the pod shows whose fault it was.
std::optional<api::RestartCause> recount(const Observed& whole, Role role, const std::string& pod_name,
                                         WallTime since, Plan& plan) {
  const cluster::Pod* pod = find_pod(whole, pod_name);
  const auto cause = pod == nullptr ? std::nullopt : diagnosis::silenced_by(*pod);
  if (!cause) return std::nullopt;
  recount_restart(plan.status.restarts, role, api::RestartCause::kSilent, *cause);
  forget_restart(since, plan.status.restarts.recent);
  std::optional<api::Fault>& fault = plan.status.fault;
  if (fault && fault->pod == pod_name) {
    fault->provisional_since.reset();
    fault->cause = *cause;
  }
  return cause;
}

std::string recounted(const std::string& pod, api::RestartCause cause) {
  return str_cat("the member in pod ", pod, " fell silent, and that was not its fault (", api::name(cause),
                 "): its restart does not count against spec.runPolicy.backoffLimit");
}

// Each of the members that a node took with it.
void settle_places(const Observed& whole, Plan& plan) {
  const std::vector<api::Replacement> places = plan.status.restarts.replacements;
  for (const api::Replacement& place : places) {
    if (!place.silent_since) continue;
    const cluster::Pod* pod = find_pod(whole, place.silent_pod);
    const auto cause = recount(whole, place.role, place.silent_pod, *place.silent_since, plan);
    const bool late = whole.now - *place.silent_since >= whole.limits.settle_time;
    if (!cause && !late && pod != nullptr && !pod->ended()) continue;
    replacement_of(plan.status.restarts, place.role, place.index).silent_since.reset();
    if (cause)
      record_event(whole, false, api::name(*cause), recounted(place.silent_pod, *cause),
                   "a restart is counted anew", plan);
  }
}

}  // namespace

void settle(const Observed& whole, Plan& plan) {
  if (is_terminal(plan.status.phase)) return;
  settle_places(whole, plan);
  const std::optional<api::Fault> fault = plan.status.fault;
  if (!fault || !fault->provisional_since) return;
  const auto cause = recount(whole, fault->role, fault->pod, *fault->provisional_since, plan);
  if (!cause) return;
  const std::string message = recounted(fault->pod, *cause);
  if (plan.status.phase != api::Phase::kRestarting)
    return record_event(whole, false, api::name(*cause), message, "a restart is counted anew", plan);
  enter_phase(whole, api::Phase::kRestarting, api::name(*cause),
              str_cat(message, "; all members start again (attempt ", plan.status.restarts.attempt, ")"),
              plan);
}

Finding rule_provisional(const Observed& whole, Plan& plan) {
  if (!plan.status.fault || !plan.status.fault->provisional_since) return Finding::kNone;
  api::Fault fault = *plan.status.fault;
  RestartBudget budget = restart_budget(whole.job, plan.status.restarts, whole.now);
  const bool too_many = budget.used > budget.limit;
  const cluster::Pod* pod = find_pod(whole, fault.pod);
  const bool runs = pod != nullptr && !pod->ended();
  const Duration left = *fault.provisional_since + whole.limits.settle_time - whole.now;
  if (runs && !too_many) return Finding::kNone;
  if (runs && left > Duration::zero()) {
    requeue(left, plan);
    return Finding::kAwaited;
  }
  fault.provisional_since.reset();
  plan.status.fault = fault;
  if (!too_many) return Finding::kNone;
  const std::string finding =
      runs
          ? str_cat("; its node has not shown to be lost within ", format_duration(whole.limits.settle_time))
          : str_cat("; its node is not lost: the pod ", pod == nullptr ? "is gone" : diagnosis::end_of(*pod));
  --budget.used;  // it did not come to this one
  end_job(whole, api::Phase::kFailed, "BackoffLimitExceeded",
          str_cat(diagnosis::message_of(fault), used_up(budget), finding), plan);
  plan.status.fault = std::move(fault);
  if (pod != nullptr) plan.failed_pod = *pod;
  clean_pods(whole, whole.limits.failure_grace, "the job has failed", plan);
  return Finding::kDecided;
}

}  // namespace paceline::plan
