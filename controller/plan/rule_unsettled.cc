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

#include "base/text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/cause.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

namespace {

const cluster::Pod* find_pod(const Observed& whole, const std::string& name) {
  const auto found =
      std::ranges::find_if(whole.pods, [&](const cluster::Pod& pod) { return pod.spec.name == name; });
  return found == whole.pods.end() ? nullptr : &*found;
}

// Its message, with what was found, before the last lines of a log that may follow it.
std::string with_finding(const api::Status& status, const api::Unsettled& unsettled, std::int64_t restarts,
                         const std::string& finding) {
  std::string message = status.message;
  if (status.phase != api::Phase::kRestarting || status.reason != api::name(api::RestartCause::kSilent))
    message = str_cat("the member in pod ", unsettled.pod, " fell silent", used_up(restarts));
  return message.insert(std::min(message.find('\n'), message.size()), finding);
}

}  // namespace

void settle(const Observed& whole, Plan& plan) {
  api::Restarts& restarts = plan.status.restarts;
  if (!restarts.unsettled || is_terminal(plan.status.phase)) return;
  const cluster::Pod* pod = find_pod(whole, restarts.unsettled->pod);
  const auto cause = pod == nullptr ? std::nullopt : silenced_by(*pod);
  if (!cause) return;
  recount_restart(restarts, restarts.unsettled->role, api::RestartCause::kSilent, *cause);
  restarts.unsettled.reset();
  const std::string message =
      str_cat("the member in pod ", pod->spec.name, " fell silent, and that was not its fault (",
              api::name(*cause), "): its restart does not count against spec.runPolicy.backoffLimit");
  if (plan.status.phase != api::Phase::kRestarting)
    return record_event(whole, false, api::name(*cause), message, "a restart is counted anew", plan);
  enter_phase(whole, api::Phase::kRestarting, api::name(*cause),
              str_cat(message, "; all members start again (attempt ", restarts.attempt, ")"), plan);
}

Failure rule_unsettled(const Observed& whole, Plan& plan) {
  if (!plan.status.restarts.unsettled) return Failure::kNone;
  const api::Unsettled unsettled = *plan.status.restarts.unsettled;
  const std::int64_t count = restarts_of_ring(whole.job, plan.status.restarts, true);
  const bool too_many = count > whole.job.spec.run_policy.backoff_limit;
  const cluster::Pod* pod = find_pod(whole, unsettled.pod);
  if (pod == nullptr && whole.pods_may_lag) {
    if (!too_many) return Failure::kNone;  // nobody takes its place before the cluster is asked
    plan.confirm = Confirm{.why = str_cat(unsettled.pod, ", whose member fell silent, is not in the list"),
                           .pods = who_may_hold(whole.job)};
    if (std::ranges::find(plan.confirm->pods, unsettled.pod) == plan.confirm->pods.end())
      plan.confirm->pods.push_back(unsettled.pod);
    return Failure::kDecided;
  }
  const bool runs = pod != nullptr && !pod->ended();
  const Duration left = unsettled.since + whole.limits.settle_time - whole.now;
  if (runs && !too_many) return Failure::kNone;
  if (runs && left > Duration::zero()) {
    requeue(left, plan);
    return Failure::kAwaited;
  }
  plan.status.restarts.unsettled.reset();
  if (!too_many) return Failure::kNone;
  const std::string finding =
      runs ? str_cat("; its node has not shown to be lost within ", format_duration(whole.limits.settle_time))
           : str_cat("; its node is not lost: the pod ", pod == nullptr ? "is gone" : describe_end(*pod));
  end_job(whole, api::Phase::kFailed, "BackoffLimitExceeded",
          with_finding(plan.status, unsettled, count - 1, finding), plan);
  clean_pods(whole, whole.limits.failure_grace, "the job has failed", plan);
  return Failure::kDecided;
}

}  // namespace paceline::plan
