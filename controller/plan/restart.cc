#include "controller/plan/restart.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/diagnosis/diagnosis.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart_budget.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

namespace {

bool trained_for_long(const Observed& observed) {
  for (const api::Condition& condition : observed.job.status.conditions) {
    if (condition.type == "Running" && condition.status)
      return observed.now - condition.last_transition >= observed.limits.healthy_after;
  }
  return false;
}

Duration back_off(const Limits& limits, std::int64_t in_a_row) {
  if (in_a_row <= 1) return Duration::zero();
  Duration wait = limits.first_back_off;
  for (std::int64_t i = 2; i < in_a_row && wait < limits.longest_back_off; ++i) wait *= 2;
  return std::min(wait, limits.longest_back_off);
}

api::RestartCount& count_of(api::Restarts& restarts, Role role, api::RestartCause cause) {
  const auto order = [](const api::RestartCount& each) { return std::tuple(each.role, each.cause); };
  const auto place = std::ranges::lower_bound(restarts.by_cause, std::tuple(role, cause), {}, order);
  if (place != restarts.by_cause.end() && place->role == role && place->cause == cause) return *place;
  return *restarts.by_cause.insert(place, {role, cause, 0});
}

// The pod of a member that fell silent runs still, for all that the cluster knows.
bool is_provisional(const api::Fault& fault, const cluster::Pod* pod) {
  return fault.cause == api::RestartCause::kSilent && pod != nullptr && !pod->ended();
}

void count_in_budget(const Observed& observed, Role role, api::RestartCause cause, api::Restarts& restarts) {
  count_restart(restarts, role, cause);
  if (api::is_charged(cause) && api::is_member(observed.job, role))
    note_restart(observed.job.spec.run_policy, observed.now, restarts.recent);
}

void take_next_attempt(const api::TrainingJob& job, api::Restarts& restarts) {
  restarts.attempt = next_attempt(job);
  std::erase_if(restarts.replacements,
                [&](const api::Replacement& each) { return api::is_member(job, each.role); });
}

// Whether policy and budgets allow another start; `failure` says why not.
enum class Budget : std::uint8_t { kLeft, kUsedUp, kNever, kUsedUpProvisionally };

Budget budget_of(const Observed& observed, Failure& failure, const Plan& plan);

void end_pod(const Observed& observed, const cluster::Pod* pod, const std::string& why, Plan& plan) {
  if (pod == nullptr || pod->ended() || pod->deleting) return;
  plan.actions.push_back(
      DeletePod{pod->spec.ns, pod->spec.name, pod->uid, observed.limits.failure_grace, why});
}

void begin(const Observed& observed, Role role, api::RestartCause cause, const std::string& reason,
           const std::string& message, bool only_if_lost, Duration grace, Plan& plan) {
  api::Restarts& restarts = plan.status.restarts;
  const bool resized = cause == api::RestartCause::kResized;
  restarts.in_a_row = resized || trained_for_long(observed) ? (resized ? 0 : 1) : restarts.in_a_row + 1;
  count_in_budget(observed, role, cause, restarts);
  take_next_attempt(observed.job, restarts);
  restarts.size = 0;
  restarts.not_before.reset();
  const Duration wait = back_off(observed.limits, restarts.in_a_row);
  if (wait > Duration::zero()) restarts.not_before = observed.now + wait;
  const std::string attempt =
      str_cat(after(wait), " (attempt ", restarts.attempt, ")", what_is_lost(observed));
  enter_phase(observed, api::Phase::kRestarting, reason,
              only_if_lost ? str_cat(message, ", and start once more", attempt, " only if its node is lost")
                           : str_cat(message, "; all members start again", attempt),
              plan);
  for (const cluster::Pod& pod : observed.pods) {
    if (!api::is_member(observed.job, pod.spec.role) || pod.all_ended() || pod.deleting) continue;
    plan.actions.push_back(DeletePod{pod.spec.ns, pod.spec.name, pod.uid, grace_of(observed, pod, grace),
                                     str_cat("restart: ", message)});
  }
  requeue(wait, plan);
}

}  // namespace

std::string after(Duration wait) {
  return wait > Duration::zero() ? str_cat(" after ", format_duration(wait)) : "";
}

void count_restart(api::Restarts& restarts, Role role, api::RestartCause cause) {
  if (cause != api::RestartCause::kResized) ++restarts.total;
  ++count_of(restarts, role, cause).count;
}

void recount_restart(api::Restarts& restarts, Role role, api::RestartCause from, api::RestartCause to) {
  --count_of(restarts, role, from).count;
  ++count_of(restarts, role, to).count;
  std::erase_if(restarts.by_cause, [](const api::RestartCount& each) { return each.count <= 0; });
}

const char* what_is_permanent(api::RestartCause cause) {
  switch (cause) {
    case api::RestartCause::kNotStarted:
      return "a program that can't be started is permanent";
    case api::RestartCause::kDeadlineExceeded:
      return "a pod that is ended by its own activeDeadlineSeconds is permanent";
    case api::RestartCause::kOutOfMemory:
      return "memory that its own program finds lacking is permanent, since the next start needs as much";
    case api::RestartCause::kNotFinite:
      return "a loss or a gradient that is not finite is permanent, since the newest checkpoint leads there "
             "again";
    case api::RestartCause::kDataUnreadable:
      return "data that can't be read is permanent, since the next start reads the same";
    default:
      return "exit codes 1 to 127 are permanent";
  }
}

void skip_to_next_attempt(const api::TrainingJob& job, api::Restarts& restarts) {
  take_next_attempt(job, restarts);
  restarts.full_attempt = restarts.attempt;
  restarts.size = 0;
  restarts.in_a_row = 0;
  restarts.not_before.reset();
}

void begin_attempt(const Observed& observed, Role role, api::RestartCause cause, const std::string& reason,
                   const std::string& message, Duration grace, Plan& plan) {
  begin(observed, role, cause, reason, message, false, grace, plan);
}

Failure::Failure(api::Fault of)
    : fault(std::move(of)), reason(diagnosis::reason_of(fault)), message(diagnosis::message_of(fault)) {}

bool may_restart(api::RestartPolicy policy, const api::Fault& fault) {
  if (fault.cause == api::RestartCause::kExited && fault.exit_code == 0)
    return policy != api::RestartPolicy::kNever;
  return may_restart(policy, fault.cause);
}

bool may_restart(api::RestartPolicy policy, api::RestartCause cause) {
  if (policy == api::RestartPolicy::kNever) return false;
  if (policy != api::RestartPolicy::kExitCode || !api::is_charged(cause)) return true;
  switch (cause) {
    case api::RestartCause::kExited:
    case api::RestartCause::kOutOfMemory:
    case api::RestartCause::kNotFinite:
    case api::RestartCause::kDataUnreadable:
    case api::RestartCause::kNotStarted:
    case api::RestartCause::kDeadlineExceeded:
      return false;
    default:
      return true;
  }
}

bool restart_by_policy(const Observed& observed, Failure& failure, Plan& plan) {
  const Budget budget = budget_of(observed, failure, plan);
  if (budget == Budget::kNever || budget == Budget::kUsedUp) return false;
  const api::Fault& fault = failure.fault;
  const cluster::Pod* const pod = find_pod(observed, fault.role, fault.index);
  begin(observed, fault.role, fault.cause, api::name(fault.cause), failure.message,
        budget == Budget::kUsedUpProvisionally, observed.limits.failure_grace, plan);
  plan.status.fault = fault;
  if (is_provisional(fault, pod)) plan.status.fault->provisional_since = observed.now;
  if (pod != nullptr) plan.failed_pod = *pod;
  return true;
}

Duration take_next_number(const Observed& observed, Role role, int index, Plan& plan) {
  api::Replacement& place = replacement_of(plan.status.restarts, role, index);
  const bool lived = !place.last || observed.now - *place.last >= observed.limits.healthy_after;
  place.in_a_row = lived ? 1 : place.in_a_row + 1;
  place.last = observed.now;
  take_next(place);
  place.not_before.reset();
  const Duration wait = back_off(observed.limits, place.in_a_row);
  if (wait > Duration::zero()) place.not_before = observed.now + wait;
  return wait;
}

bool starts_in_place(const api::TrainingJob& job, Role role) {
  return !job.spec.training && api::is_member(job, role) &&
         api::restart_scope(job, role) != api::RestartScope::kJob;
}

bool starts_in_place(const api::TrainingJob& job) {
  return starts_in_place(job, Role::kChief) || starts_in_place(job, Role::kWorker);
}

std::vector<int> places_in_scope(const api::TrainingJob& job, Role role, int index) {
  const auto& replica = api::replica_spec(job, role);
  if (!replica || api::restart_scope(job, role) == api::RestartScope::kReplica) return {index};
  std::vector<int> places(static_cast<std::size_t>(replica->replicas));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

void replace(const Observed& observed, Failure failure, Duration age, Plan& plan) {
  const Budget budget = budget_of(observed, failure, plan);
  const Duration left = observed.limits.settle_time - age;
  if (budget == Budget::kUsedUpProvisionally && left > Duration::zero()) return requeue(left, plan);
  if (budget == Budget::kUsedUpProvisionally) failure.reason = "BackoffLimitExceeded";
  if (budget != Budget::kLeft) return end_by(observed, std::move(failure), plan);
  const auto [role, index] = std::pair(failure.fault.role, failure.fault.index);
  const cluster::Pod* const pod = find_pod(observed, role, index);
  count_in_budget(observed, role, failure.fault.cause, plan.status.restarts);
  const std::vector<int> places = places_in_scope(observed.job, role, index);
  Duration wait{};
  for (const int each : places) wait = std::max(wait, take_next_number(observed, role, each, plan));
  api::Replacement& place = replacement_of(plan.status.restarts, role, index);
  const bool silent = diagnosis::fell_silent(failure.fault) && pod != nullptr && !pod->ended();
  place.silent_pod = silent ? pod->spec.name : "";
  place.silent_since.reset();
  if (is_provisional(failure.fault, pod)) place.silent_since = observed.now;
  const std::string next = pod_name(observed.job, role, index, newest_number(observed.job, role, index) + 1);
  const std::string who =
      places.size() > 1 ? str_cat("all of role ", role_name(role), " start again")
      // One that stood by may have the place in the ring; which one, the coordinator knows.
      : api::standby_count(observed.job) > 0 ? str_cat(next, " is started")
                                             : str_cat(next, " is to take its place");
  const bool waits = observed.report && observed.report->shortage;
  const char* const others = !others_live(observed, role, index) ? ""
                             : waits                             ? "the others wait, and "
                                                                 : "the others go on, and ";
  const std::string message = str_cat(failure.message, "; ", others, who, after(wait));
  for (const int each : places) end_pod(observed, find_pod(observed, role, each), failure.message, plan);
  if (pod != nullptr) plan.failed_pod = *pod;
  plan.status.reason = kMemberReplaced;
  plan.status.message = plan.status_reason = message;
  record_event(observed, true, kMemberReplaced, message,
               str_cat(member_name(role, index), " is lost, and is replaced"), plan);
  plan.status.fault = std::move(failure.fault);
  requeue(Duration::zero(), plan);
}

void end_by(const Observed& observed, Failure failure, Plan& plan) {
  end_job(observed, api::Phase::kFailed, failure.reason,
          str_cat(failure.message, diagnosis::victims_of(failure.fault)), plan);
  const cluster::Pod* const pod = find_pod(observed, failure.fault.role, failure.fault.index);
  if (pod != nullptr) plan.failed_pod = *pod;
  // The others leave in order: nobody's end is taken for a failure.
  const bool others_train = observed.report && observed.report->state == JobState::kRunning;
  if (others_train && is_elastic(observed.job)) plan.stop_members = StopMembers{failure.message};
  plan.status.fault = std::move(failure.fault);
  clean_pods(observed, observed.limits.failure_grace, str_cat("the job has failed: ", failure.message), plan);
}

namespace {

Budget budget_of(const Observed& observed, Failure& failure, const Plan& plan) {
  const api::Fault& fault = failure.fault;
  const auto& replica = api::replica_spec(observed.job, fault.role);
  if (!replica || replica->restart_policy == api::RestartPolicy::kNever) return Budget::kNever;
  if (!may_restart(replica->restart_policy, fault)) {
    failure.message += str_cat("; ", what_is_permanent(fault.cause), " (restartPolicy: ExitCode)");
    return Budget::kNever;
  }
  const bool charged = api::is_charged(fault.cause);
  const RestartBudget budget = restart_budget(observed.job, plan.status.restarts, observed.now);
  if (charged && budget.is_used_up()) {
    failure.message += used_up(budget);
    if (is_provisional(fault, find_pod(observed, fault.role, fault.index)))
      return Budget::kUsedUpProvisionally;
    failure.reason = "BackoffLimitExceeded";
    return Budget::kUsedUp;
  }
  const std::int64_t count = restarts_of_ring(observed.job, plan.status.restarts, false);
  if (!charged && count >= observed.limits.disruptions) {
    failure.reason = "DisruptionLimitExceeded";
    failure.message += str_cat("; the members were started again ", pluralize(count, "time", "times"),
                               " for reasons that are not the job's fault, which is this cluster's limit");
    return Budget::kUsedUp;
  }
  return Budget::kLeft;
}

}  // namespace

}  // namespace paceline::plan
