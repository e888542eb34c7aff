#include "controller/plan/elastic.h"

#include <algorithm>

#include "base/text.h"
#include "controller/diagnosis/diagnosis.h"
#include "controller/plan/attempts.h"
#include "controller/plan/faults.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

namespace {

bool never(const std::optional<api::ReplicaSpec>& replica) {
  return !replica || replica->restart_policy == api::RestartPolicy::kNever;
}

// A process that has ended is known to by its pod a moment later, and why.
bool awaits_end(const Observed& observed, const LostMember& lost, const cluster::Pod* pod, Plan& plan) {
  const bool will_end =
      lost.fault.kind == api::FaultKind::kDead || lost.fault.kind == api::FaultKind::kFailed;
  const bool has_end = lost.fault.signal || lost.fault.exit_code || pod == nullptr || pod->ended();
  if (!will_end || has_end || lost.age >= observed.limits.exit_grace) return false;
  requeue(observed.limits.exit_grace - lost.age, plan);
  return true;
}

void end_pod(const Observed& observed, const cluster::Pod* pod, const std::string& why, Plan& plan) {
  if (pod == nullptr || pod->ended() || pod->deleting) return;
  plan.actions.push_back(
      DeletePod{pod->spec.ns, pod->spec.name, pod->uid, observed.limits.failure_grace, why});
}

}  // namespace

bool is_elastic(const api::TrainingJob& job) {
  if (!job.spec.training || job.spec.strategy.type != api::StrategyType::kAllReduce) return false;
  const auto& roles = job.spec.replica_specs;
  return !never(roles.worker) || !never(roles.chief) || least_trainers(job).has_value();
}

bool is_elastic(const api::TrainingJob& job, Role role) {
  return api::trains(role) && is_elastic(job);
}

std::optional<int> least_trainers(const api::TrainingJob& job) {
  const auto& worker = job.spec.replica_specs.worker;
  if (!worker || !worker->min_replicas) return std::nullopt;
  return std::max(1, static_cast<int>(*worker->min_replicas));
}

int min_trainers(const api::TrainingJob& job) {
  return least_trainers(job).value_or(1);
}

void replace_lost(const Observed& observed, const LostMember& lost, Plan& plan) {
  const auto [role, index] = std::pair(lost.fault.role, lost.fault.index);
  const auto number = attempt_in(lost.fault.pod);
  if (number && *number < wanted_attempt(observed.job, role, index)) return;
  const cluster::Pod* const pod = find_pod(observed, role, index);
  if (awaits_end(observed, lost, pod, plan)) return;
  Failure failure(diagnosis::diagnose(place_of(observed, role, index), lost.fault));
  const Replacing replacing = replace_by_policy(observed, failure, lost.age, plan);
  if (replacing == Replacing::kAwaited) return;
  if (replacing == Replacing::kRefused) return end_by(observed, std::move(failure), plan);
  const std::string next = pod_name(observed.job, role, index, wanted_attempt(observed.job, role, index) + 1);
  const std::string message = str_cat(failure.message, "; the others go on, and ", next, " takes its place");
  end_pod(observed, pod, failure.message, plan);
  if (pod != nullptr) plan.failed_pod = *pod;
  plan.status.reason = "MemberReplaced";
  plan.status.message = plan.status_reason = message;
  record_event(observed, true, "MemberReplaced", message,
               str_cat(member_name(role, index), " is lost, and is replaced"), plan);
  plan.status.fault = std::move(failure.fault);
  requeue(Duration::zero(), plan);
}

}  // namespace paceline::plan
