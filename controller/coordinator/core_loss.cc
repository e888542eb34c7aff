// Whether a job goes on without a member that is lost (core.h, LossPolicy).

#include "base/text.h"
#include "controller/coordinator/core.h"
#include "controller/plan/elastic.h"
#include "controller/plan/restart.h"

namespace paceline::coordinator {

namespace {

using v1::ParameterServerSpec;

// How many must be left who train.
std::int64_t least_trainers(const ParameterServerSpec& spec) {
  const bool waits = spec.synchronization() == ParameterServerSpec::SYNCHRONOUS;
  return waits ? spec.gradients_per_step() : 1;
}

LossDecision decide(const ParameterServerSpec& spec, const api::Fault& verdict, int trainers_left) {
  const std::int64_t least = least_trainers(spec);
  const bool spare = verdict.role == Role::kWorker && verdict.rank > 0 && trainers_left >= least &&
                     verdict.kind != api::FaultKind::kDiverged;
  if (!spare) return fail_on_loss(verdict, trainers_left);
  return {LossAction::kGoOn,
          str_cat(role_name(verdict.role), "-", verdict.index, " is lost, and the ", trainers_left,
                  trainers_left == 1 ? " that is left goes on: " : " that are left go on: ", least,
                  least == 1 ? " is" : " are", " enough")};
}

LossDecision decide_ring(const RingRules& rules, const api::Fault& verdict, int trainers_left) {
  using enum LossAction;
  const std::string who = member_name(verdict.role, verdict.index);
  const api::RestartPolicy policy = verdict.role == Role::kChief ? rules.chief : rules.worker;
  // All have the same weights: where a step leads one of them, it leads the others.
  const bool all_are =
      verdict.kind == api::FaultKind::kDiverged || verdict.kind == api::FaultKind::kNotFinite;
  if (all_are) return {kFailJob, str_cat(who, " is lost, and nobody goes on with these weights")};
  if (policy == api::RestartPolicy::kNever) {
    if (!rules.least || trainers_left < *rules.least) return fail_on_loss(verdict, trainers_left);
    return {kFormNextView, str_cat(who, " is lost, and ", trainers_left, " go on without it")};
  }
  if ((verdict.role == Role::kChief ? rules.chief_scope : rules.worker_scope) == api::RestartScope::kJob)
    return {kFailJob, str_cat(who, " is lost, and all members begin again (restartScope: Job)")};
  if (!plan::may_restart(policy, verdict))
    return {kFailJob, str_cat(who, " is lost for good (restartPolicy: ", api::name(policy), ")")};
  return {kFormNextView, str_cat(who, " is lost; ", trainers_left, " go on until another one is there")};
}

}  // namespace

RingRules ring_rules(const api::TrainingJob& job) {
  const auto policy = [&](Role role) {
    const auto& replica = api::replica_spec(job, role);
    return replica ? replica->restart_policy : api::RestartPolicy::kNever;
  };
  return {.chief = policy(Role::kChief),
          .worker = policy(Role::kWorker),
          .chief_scope = api::restart_scope(job, Role::kChief),
          .worker_scope = api::restart_scope(job, Role::kWorker),
          .least = plan::least_trainers(job)};
}

LossPolicy ring_policy(const RingRules& rules) {
  return [rules](const api::Fault& verdict, int trainers_left) {
    return decide_ring(rules, verdict, trainers_left);
  };
}

LossPolicy loss_policy(const v1::TrainingSpec& training, const RingRules& ring) {
  if (!training.has_parameter_server()) return ring_policy(ring);
  return [spec = training.parameter_server()](const api::Fault& verdict, int trainers_left) {
    return decide(spec, verdict, trainers_left);
  };
}

}  // namespace paceline::coordinator
