// Rules over replica counts and spec.runPolicy.

#include <algorithm>
#include <string>
#include <vector>

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/api/rules.h"

namespace paceline::api {

namespace {

constexpr char kWorker[] = "spec.replicaSpecs.worker";
constexpr char kMinAvailable[] = "spec.runPolicy.schedulingPolicy.minAvailable";

void check_elastic(const TrainingJob& job, Findings& f) {
  if (!job.spec.replica_specs.worker) return;
  const ReplicaSpec& worker = *job.spec.replica_specs.worker;
  const std::string replicas = str_cat(kWorker, ".replicas"), min = str_cat(kWorker, ".minReplicas"),
                    max = str_cat(kWorker, ".maxReplicas");
  if (!f.clean(replicas)) return;
  if (worker.min_replicas && f.clean(min) && *worker.min_replicas > worker.replicas)
    f.refuse(min, "more than replicas", str_cat(*worker.min_replicas), str_cat("at most ", worker.replicas));
  if (worker.max_replicas && f.clean(max) && *worker.max_replicas < worker.replicas)
    f.refuse(max, "fewer than replicas", str_cat(*worker.max_replicas),
             str_cat("at least ", worker.replicas));
}

// Only a ring goes on without a lost member, and takes another one in.
void check_standby(const TrainingJob& job, Findings& f) {
  const std::string path = str_cat(kWorker, ".standby");
  if (standby_count(job) == 0 || !f.clean(path) || !f.clean(kStrategyType)) return;
  const std::string count = str_cat(standby_count(job));
  if (!job.spec.training || job.spec.strategy.type != StrategyType::kAllReduce) {
    f.refuse(path, "only an all-reduce of the built-in trainer goes on with another member", count,
             "0, or spec.training with strategy.type: AllReduce");
  } else if (restart_scope(job, Role::kWorker) != RestartScope::kReplica) {
    f.refuse(path, "all start again when a worker is lost", count, "0, or restartScope: Replica");
  } else if (job.spec.replica_specs.worker->restart_policy != RestartPolicy::kNever &&
             job.spec.run_policy.backoff_limit == 0 && f.clean("spec.runPolicy.backoffLimit")) {
    Diagnostic& warning =
        f.add(path, "with backoffLimit 0 the first failure ends the job, though one stands by");
    warning.severity = Severity::kWarning;
    warning.found = count;
    warning.allowed = "backoffLimit >= 1; or restartPolicy: Never, where a lost worker is not started again";
  }
}

constexpr char kStragglersAction[] = "spec.stragglers.action";

// Only the members of a ring of ours have shares that can differ.
void check_rebalance(const TrainingJob& job, Findings& f) {
  const StragglerPolicyAction action = job.spec.stragglers.action;
  if (action != StragglerPolicyAction::kRebalance || !f.clean(kStragglersAction) || !f.clean(kStrategyType))
    return;
  const char* const allowed = "Report or Ignore; or spec.training with strategy.type: AllReduce";
  if (!job.spec.training) {
    f.refuse(kStragglersAction, "a program of its own cuts its batches itself", name(action), allowed);
  } else if (job.spec.strategy.type != StrategyType::kAllReduce) {
    f.refuse(kStragglersAction,
             "a gradient that a parameter server takes is of as many samples as another one", name(action),
             allowed);
  } else if (const std::int64_t batch = job.spec.training->global_batch_size,
             members = may_have_two_trainers(job) ? std::max<std::int64_t>(trainer_count(job), 2) : 1;
             f.clean("spec.training.globalBatchSize") && f.clean(kReplicas) &&
             (members < 2 || batch < 2 * members)) {
    Diagnostic& warning =
        f.add(kStragglersAction, str_cat("a global batch of ", batch, " leaves nothing to share out among ",
                                         pluralize(members, "member", "members")));
    warning.severity = Severity::kWarning;
    warning.found = name(action);
    warning.allowed = "Report or Ignore; or two members or more, with two samples of the batch for each";
  }
}

// Whether members are replaced one by one while the others go on.
bool replaces_members(const TrainingJob& job) {
  const auto is_replaced = [&](Role role) {
    const auto& replica = replica_spec(job, role);
    return replica && replica->restart_policy != RestartPolicy::kNever &&
           restart_scope(job, role) == RestartScope::kReplica;
  };
  const bool ring = job.spec.training && job.spec.strategy.type == StrategyType::kAllReduce;
  return ring && (is_replaced(Role::kChief) || is_replaced(Role::kWorker));
}

// Members compare themselves with one another, and have a link where they train over one.
void check_preflight(const TrainingJob& job, Findings& f) {
  const std::string path = "spec.preflight";
  if (!job.spec.preflight || !f.clean(path) || !f.clean(kStrategyType) || !f.clean(kReplicas)) return;
  const char* const allowed = "leave it out; or spec.training with strategy.type: AllReduce";
  if (!job.spec.training) {
    f.refuse(path, "a program of its own knows nothing of the check", "a map", allowed);
  } else if (job.spec.strategy.type != StrategyType::kAllReduce) {
    f.refuse(path, "only the members of an all-reduce have links to each other", "a map", allowed);
  } else if (!may_have_two_trainers(job)) {
    f.refuse(path, "one member has no other to be compared with", "a map",
             "leave it out; or 2 members that train or more");
  } else if (job.spec.preflight->action == PreflightAction::kExclude && !replaces_members(job)) {
    Diagnostic& warning =
        f.add(path,
              "no member of this job is replaced while the others go on, so that those that "
              "fail are only told of");
    warning.severity = Severity::kWarning;
    warning.found = name(job.spec.preflight->action);
    warning.allowed = "action: Report; or a restartPolicy other than Never with restartScope: Replica";
  }
}

// Without a successor a slow member is told of, and stays.
void check_stragglers(const TrainingJob& job, Findings& f) {
  const std::string told = "spec.stragglers.toldByProgram", path = kStragglersAction;
  if (job.spec.training && job.spec.stragglers.told_by_program && f.clean(told))
    f.refuse(told, "the built-in trainer measures its own steps", "true", "only without training");
  if (job.spec.stragglers.action != StragglerPolicyAction::kReplace || !f.clean(path) ||
      !f.clean(kStrategyType) || !f.clean(kReplicas))
    return;
  if (replaces_members(job)) return;
  Diagnostic& warning =
      f.add(path,
            "no member of this job is replaced while the others go on, so that slow ones are "
            "only told of");
  warning.severity = Severity::kWarning;
  warning.found = name(job.spec.stragglers.action);
  const bool ring = job.spec.training && job.spec.strategy.type == StrategyType::kAllReduce;
  warning.allowed = str_cat(ring ? "Report, Rebalance or Ignore; or "
                                 : "Report or Ignore; or an all-reduce of the built-in trainer with ",
                            "a restartPolicy other than Never and restartScope: Replica");
}

// Members train when all of them are there: another number would not be acted on.
void check_scheduling(const TrainingJob& job, Findings& f) {
  const std::optional<std::int64_t>& min = job.spec.run_policy.scheduling_policy.min_available;
  if (!min || !f.clean(kMinAvailable) || !f.clean("spec.replicaSpecs") || !f.has("spec.replicaSpecs")) return;
  const std::int64_t members = member_count(job);
  if (*min != members)
    f.refuse(kMinAvailable, "members train together or not at all", str_cat(*min),
             str_cat(members, ", the number of members"));
}

// Which scopes a role may have, and why no others.
struct Scopes {
  std::vector<RestartScope> allowed;
  const char* why = "";
};

Scopes scopes_of(const TrainingJob& job, Role role) {
  using enum RestartScope;
  if (role == Role::kEvaluator) return {{kReplica}, "nobody waits for an evaluator"};
  if (!job.spec.training) return {{kReplica, kRole, kJob}};
  if (job.spec.strategy.type == StrategyType::kParameterServer)
    return {{kJob}, "servers and those who train with them begin together, from one checkpoint"};
  return {{kReplica, kJob}, "the members of an all-reduce are alike: one is replaced, or all begin again"};
}

void check_scopes(const TrainingJob& job, Findings& f) {
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    const auto& replica = replica_spec(job, role);
    const std::string path = str_cat(kReplicas, ".", role_name(role), ".restartScope");
    if (!replica || !replica->restart_scope || !f.clean(path) || !f.clean(kStrategyType)) continue;
    const RestartScope scope = *replica->restart_scope;
    if (replica->restart_policy == RestartPolicy::kNever) {
      f.refuse(path, "nobody of this role is started again", name(scope),
               "only with a restartPolicy other than Never");
      continue;
    }
    const Scopes scopes = scopes_of(job, role);
    if (std::ranges::count(scopes.allowed, scope) > 0) continue;
    std::string allowed;
    for (const RestartScope each : scopes.allowed)
      allowed += str_cat(allowed.empty() ? "" : ", ", name(each));
    f.refuse(path, scopes.why, name(scope), allowed);
  }
}

}  // namespace

void check_policies(const TrainingJob& job, Findings& findings) {
  check_elastic(job, findings);
  check_scheduling(job, findings);
  check_scopes(job, findings);
  check_standby(job, findings);
  check_preflight(job, findings);
  check_rebalance(job, findings);
  check_stragglers(job, findings);
}

}  // namespace paceline::api
