#include "controller/api/types.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "controller/api/choices.h"

namespace paceline::api {

std::int64_t trainer_count(const TrainingJob& job) {
  const ReplicaSpecs& roles = job.spec.replica_specs;
  return (roles.chief ? roles.chief->replicas : 0) + (roles.worker ? roles.worker->replicas : 0);
}

std::int64_t most_trainers(const TrainingJob& job) {
  const auto& worker = job.spec.replica_specs.worker;
  const std::int64_t more = worker ? worker->max_replicas.value_or(0) - worker->replicas : 0;
  return trainer_count(job) + std::max<std::int64_t>(more, 0);
}

bool may_have_two_trainers(const TrainingJob& job) {
  const auto& worker = job.spec.replica_specs.worker;
  return most_trainers(job) >= 2 || (worker && worker->min_replicas && !worker->max_replicas);
}

bool trains(Role role) {
  return role == Role::kChief || role == Role::kWorker;
}

std::int64_t member_count(const TrainingJob& job) {
  const auto& ps = job.spec.replica_specs.ps;
  return trainer_count(job) + (ps && is_member(job, Role::kServer) ? ps->replicas : 0);
}

std::int64_t standby_count(const TrainingJob& job) {
  const auto& worker = job.spec.replica_specs.worker;
  return worker ? worker->standby.value_or(0) : 0;
}

bool is_member(const TrainingJob& job, Role role) {
  return trains(role) || (role == Role::kServer && job.spec.training.has_value());
}

std::int64_t units_per_step(const TrainingJob& job) {
  return trainer_count(job) - job.spec.strategy.backup_workers;
}

std::int64_t gradients_per_step(const TrainingJob& job) {
  return job.spec.strategy.parameter_server.gradients_per_step.value_or(units_per_step(job));
}

const std::optional<ReplicaSpec>& replica_spec(const TrainingJob& job, Role role) {
  const ReplicaSpecs& roles = job.spec.replica_specs;
  switch (role) {
    case Role::kChief:
      return roles.chief;
    case Role::kWorker:
      return roles.worker;
    case Role::kServer:
      return roles.ps;
    case Role::kEvaluator:
      break;
  }
  return roles.evaluator;
}

RestartScope restart_scope(const TrainingJob& job, Role role) {
  const auto& replica = replica_spec(job, role);
  if (replica && replica->restart_scope) return *replica->restart_scope;
  const bool ring = job.spec.training && job.spec.strategy.type == StrategyType::kAllReduce;
  return ring || !is_member(job, role) ? RestartScope::kReplica : RestartScope::kJob;
}

bool is_our_condition(std::string_view type) {
  return std::ranges::find(kConditionTypes, type) != std::end(kConditionTypes);
}

void keep_our_conditions(Status& status) {
  std::erase_if(status.conditions, [](const Condition& each) { return !is_our_condition(each.type); });
}

std::string job_key(const TrainingJob& job) {
  return str_cat(job.metadata.ns, "/", job.metadata.name);
}

const char* name(Phase value) {
  constexpr const char* kPhaseNames[] = {"Pending", "Starting",   "Running",  "Succeeded",
                                         "Failed",  "Restarting", "Suspended"};
  return kPhaseNames[static_cast<std::size_t>(value)];
}

template <typename Enum>
requires std::is_enum_v<Enum>
const char* name(Enum value) {
  return kChoices<Enum>[static_cast<std::size_t>(value)].name;
}
template const char* name(StrategyType);
template const char* name(Synchronization);
template const char* name(Transport);
template const char* name(Algorithm);
template const char* name(Encryption);
template const char* name(RestartPolicy);
template const char* name(RestartScope);
template const char* name(CleanPodPolicy);
template const char* name(PreflightAction);
template const char* name(StragglerPolicyAction);
template const char* name(ModelType);
template const char* name(RowOptimizerType);
template const char* name(Eviction);
template const char* name(Activation);
template const char* name(DataFormat);
template const char* name(TokenType);
template const char* name(Separator);
template const char* name(OptimizerType);
template const char* name(ScheduleType);
template const char* name(Precision);

}  // namespace paceline::api
