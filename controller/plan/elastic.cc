#include "controller/plan/elastic.h"

#include <algorithm>

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/diagnosis/diagnosis.h"
#include "controller/plan/attempts.h"
#include "controller/plan/faults.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart.h"
#include "controller/plan/rules.h"
#include "controller/plan/stragglers.h"

namespace paceline::plan {

namespace {

// Whether its members are replaced one by one.
bool replaces_each(const api::TrainingJob& job, Role role) {
  const auto& replica = api::replica_spec(job, role);
  return replica && replica->restart_policy != api::RestartPolicy::kNever &&
         api::restart_scope(job, role) == api::RestartScope::kReplica;
}

// By the number of its pod; of one that never had a pod that the coordinator knows, by when it was lost.
bool was_replaced(const Observed& observed, const LostMember& lost) {
  const api::Fault& fault = lost.fault;
  if (const auto number = attempt_in(fault.pod))
    return *number < wanted_attempt(observed.job, fault.role, fault.index);
  const auto& all = observed.job.status.restarts.replacements;
  return std::ranges::any_of(all, [&](const api::Replacement& each) {
    const bool here = each.role == fault.role && each.index == fault.index;
    return here && each.last && *each.last >= observed.now - lost.age;
  });
}

}  // namespace

bool awaits_end(const Observed& observed, const LostMember& lost) {
  const cluster::Pod* const pod = find_pod(observed, lost.fault.role, lost.fault.index);
  const bool will_end = lost.fault.kind == api::FaultKind::kDead || api::is_own_word(lost.fault.kind);
  const bool has_end = lost.fault.signal || lost.fault.exit_code || pod == nullptr || pod->ended();
  return will_end && !has_end && lost.age < observed.limits.exit_grace;
}

bool awaits_end(const Observed& observed, const LostMember& lost, Plan& plan) {
  if (!awaits_end(observed, lost)) return false;
  requeue(observed.limits.exit_grace - lost.age, plan);
  return true;
}

bool is_elastic(const api::TrainingJob& job) {
  if (!job.spec.training || job.spec.strategy.type != api::StrategyType::kAllReduce) return false;
  const auto& roles = job.spec.replica_specs;
  const bool resizes = roles.worker && roles.worker->max_replicas.has_value();
  return replaces_each(job, Role::kWorker) || replaces_each(job, Role::kChief) || resizes ||
         least_trainers(job).has_value() || api::standby_count(job) > 0;
}

bool is_elastic(const api::TrainingJob& job, Role role) {
  return api::trains(role) && is_elastic(job);
}

bool has_successor(const api::TrainingJob& job, Role role) {
  return is_elastic(job, role) && replaces_each(job, role);
}

std::string successor_obstacle(const api::TrainingJob& job, Role role) {
  if (!job.spec.training) return "a program of its own (no spec.training) can't go on without a member";
  if (job.spec.strategy.type != api::StrategyType::kAllReduce || !api::trains(role))
    return "only a member of an all-reduce is replaced while the others go on";
  return has_successor(job, role) ? "" : no_successor_text(role);
}

std::string no_successor_text(Role role) {
  const std::string_view name = role_name(role);
  return str_cat("the job does not replace one ", name,
                 " while the others go on: that takes spec.replicaSpecs.", name,
                 ".restartPolicy OnFailure, Always or ExitCode, and no restartScope but Replica");
}

std::optional<int> least_trainers(const api::TrainingJob& job) {
  const auto& worker = job.spec.replica_specs.worker;
  if (worker && worker->min_replicas) return std::max(1, static_cast<int>(*worker->min_replicas));
  if (api::standby_count(job) > 0) return static_cast<int>(api::trainer_count(job));
  return std::nullopt;
}

int min_trainers(const api::TrainingJob& job) {
  if (!is_elastic(job)) return static_cast<int>(api::trainer_count(job));
  const auto& worker = job.spec.replica_specs.worker;
  return worker && worker->min_replicas ? least_trainers(job).value_or(1) : 1;
}

void resize(const Observed& observed, Plan& plan) {
  api::Restarts& restarts = plan.status.restarts;
  const std::int64_t before = restarts.size, wanted = api::member_count(observed.job);
  const auto& roles = observed.job.spec.replica_specs;
  const std::int64_t chiefs = roles.chief ? roles.chief->replicas : 0;
  const std::int64_t others = api::standby_count(observed.job) - chiefs;
  for (std::int64_t index = wanted + others; index < before + others; ++index)
    take_next(replacement_of(restarts, Role::kWorker, index));
  restarts.size = wanted;
  count_restart(restarts, Role::kWorker, api::RestartCause::kResized);
  plan.status.reason = api::name(api::RestartCause::kResized);
  plan.status.message = plan.status_reason =
      str_cat("the job had ", pluralize(before, "member", "members"), " and shall have ", wanted,
              before < wanted ? "; those that come join" : "; the last ones leave", " at the end of a step");
  record_event(observed, false, plan.status.reason, plan.status.message, "replicas was edited", plan);
}

void replace_lost(const Observed& observed, const LostMember& lost, Plan& plan) {
  const auto [role, index] = std::pair(lost.fault.role, lost.fault.index);
  if (was_replaced(observed, lost)) return;
  if (awaits_end(observed, lost, plan)) return;
  replace(observed, Failure(diagnosis::diagnose(place_of(observed, role, index), lost.fault)), lost.age,
          plan);
  if (lost.fault.kind == api::FaultKind::kUnfit) note_excluded(observed, lost.fault, plan);
}

bool is_given_up(const Observed& observed, const LostMember& lost) {
  const api::TrainingJob& job = observed.job;
  const auto& worker = job.spec.replica_specs.worker;
  if (lost.fault.cause != api::RestartCause::kDataUnreadable || !worker || !worker->min_replicas)
    return false;
  const auto& places = job.status.restarts.replacements;
  const auto place = std::ranges::find_if(places, [&](const api::Replacement& each) {
    return each.role == lost.fault.role && each.index == lost.fault.index;
  });
  if (place == places.end() || place->in_a_row < kDataTries || !place->last) return false;
  const bool lived = observed.now - lost.age - *place->last >= observed.limits.healthy_after;
  const auto trainers_lost = std::ranges::count_if(
      observed.report->lost, [](const LostMember& each) { return api::trains(each.fault.role); });
  const std::int64_t left = api::trainer_count(job) + api::standby_count(job) - trainers_lost;
  return !lived && left >= min_trainers(job);
}

std::string silent_host(const Observed& whole) {
  const cluster::Pod* newest = nullptr;
  std::optional<WallTime> since;
  for (const api::Replacement& each : whole.job.status.restarts.replacements) {
    if (each.silent_pod.empty() || (newest != nullptr && each.last < since)) continue;
    const auto silent =
        std::ranges::find(whole.pods, each.silent_pod, [](const cluster::Pod& pod) { return pod.spec.name; });
    if (silent == whole.pods.end() || silent->ended()) continue;
    newest = &*silent;
    since = each.last;
  }
  return newest == nullptr ? "" : newest->host;
}

void rule_avoidance(const Observed& observed, const Observed& whole, Plan& plan) {
  for (const cluster::Pod& pod : observed.pods) {
    // Members may be heard of before their pods' nodes are.
    const bool attached =
        observed.report && std::ranges::any_of(observed.report->members,
                                               [&](const auto& each) { return each.pod == pod.spec.name; });
    const bool placed = attached || pod.phase != cluster::PodPhase::kPending || !pod.host.empty();
    if (placed || pod.deleting || pod.spec.avoid_host.empty()) continue;
    if (pod.spec.avoid_host == silent_host(whole)) continue;
    take_next(replacement_of(plan.status.restarts, pod.spec.role, pod.spec.index));
    // The pod goes as one of an earlier number, once that is written.
    plan.status_reason =
        str_cat(pod.spec.avoid_host, " need not be avoided any more, and there is no room elsewhere");
    requeue(Duration::zero(), plan);
  }
}

}  // namespace paceline::plan
