#include "controller/plan/rules.h"

#include <algorithm>

#include "base/check.h"
#include "base/pluralize.h"
#include "base/text.h"
#include "controller/diagnosis/diagnosis.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pods.h"

namespace paceline::plan {

namespace {

constexpr Duration kShortestGrace = std::chrono::seconds(1);  // zero means at once, and is the user's alone

// Of those at most one is true.
bool is_of_a_phase(const api::Condition& condition) {
  for (int i = 0; i <= static_cast<int>(api::Phase::kSuspended); ++i) {
    if (condition.type == api::name(static_cast<api::Phase>(i))) return true;
  }
  return false;
}

bool may_enter(api::Phase from, api::Phase to) {
  using api::Phase;
  if (is_terminal(from) || to == Phase::kPending) return false;
  if (from == to) return to == Phase::kRestarting;  // once more, for another reason
  if (to == Phase::kStarting) return from == Phase::kPending || from == Phase::kSuspended;
  return to != Phase::kRunning || from != Phase::kSuspended;
}

// A change of size is what somebody asked for.
bool is_bad_news(api::Phase phase, const std::string& reason) {
  return phase == api::Phase::kFailed ||
         (phase == api::Phase::kRestarting && reason != api::name(api::RestartCause::kResized));
}

// Whether the leader's end without an error is the end of training although this coordinator has seen none of
// it: an earlier one did, and the members ended before they found the new one.
bool finished_unseen(const Observed& observed) {
  if (observed.report->generation.value > 0) return false;
  return is_built_in(observed.job, leader_slot(observed.job).role) ||
         observed.job.status.phase == api::Phase::kRunning;
}

bool reported_finished(const Observed& observed, Role role, int index) {
  return observed.report && std::ranges::any_of(observed.report->members, [&](const ReportedMember& member) {
           return member.role == role && member.index == index && member.finished;
         });
}

// At fault, and not only out of its peers' reach: then it still talks to the coordinator.
bool is_gone(const Observed& observed, Role role, int index) {
  const auto& fault = observed.report->fault;
  return fault && fault->role == role && fault->index == index && fault->kind != api::FaultKind::kUnreachable;
}

// The first of a ring that is left, which saves what is not saved yet.
bool may_save_of_ring(const Observed& observed, const cluster::Pod& pod) {
  const ReportedMember* first = nullptr;
  if (!observed.report) return false;
  for (const ReportedMember& member : observed.report->members) {
    if (member.rank < 0 || is_gone(observed, member.role, static_cast<int>(member.index))) continue;
    if (first == nullptr || member.rank < first->rank) first = &member;
  }
  return first != nullptr && first->role == pod.spec.role && first->index == pod.spec.index;
}

// It is rank 0 of a training, and not gone: it saves what is not saved yet. Or a server, which holds that.
bool may_save(const Observed& observed, const cluster::Pod& pod) {
  if (observed.job.spec.training && observed.job.spec.strategy.type == api::StrategyType::kAllReduce)
    return may_save_of_ring(observed, pod);
  const Slot leader = leader_slot(observed.job);
  const bool leads = pod.spec.role == leader.role && pod.spec.index == leader.index;
  const bool serves = pod.spec.role == Role::kServer && api::is_member(observed.job, Role::kServer);
  if (!observed.report || !(leads || serves)) return false;
  if (is_gone(observed, leader.role, leader.index)) return false;
  if (is_gone(observed, pod.spec.role, pod.spec.index)) return false;
  return std::ranges::any_of(observed.report->members, [&](const ReportedMember& member) {
    return member.role == leader.role && member.index == leader.index && member.rank >= 0;
  });
}

}  // namespace

void set_condition(const Observed& observed, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, api::Status& status) {
  PL_CHECK(api::is_our_condition(type), "others are not ours to write");
  auto found = std::ranges::find(status.conditions, type, &api::Condition::type);
  if (found == status.conditions.end())
    found = status.conditions.insert(found, api::Condition{type, !value, "", "", observed.now, {}});
  if (found->status != value || found->unknown) found->last_transition = observed.now;
  found->status = value;
  found->unknown = false;
  found->reason = reason;
  found->message = message;
  found->observed_generation = observed.generation;
}

bool reported_finished(const Observed& observed) {
  const Slot leader = leader_slot(observed.job);
  return observed.report && (observed.report->state == JobState::kFinished ||
                             reported_finished(observed, leader.role, leader.index));
}

api::Progress finished(const api::TrainingJob& job, api::Progress known) {
  if (!job.spec.training || job.spec.training->target || known.step >= known.total_steps) return known;
  if (known.step > 0) known.epoch *= static_cast<double>(known.total_steps) / static_cast<double>(known.step);
  known.step = known.total_steps;
  return known;
}

bool training_finished(const Observed& observed) {
  if (reported_finished(observed)) return true;
  if (observed.report && !finished_unseen(observed)) return false;
  const Slot leader = leader_slot(observed.job);
  return has_finished(observed, leader.role, leader.index);
}

const api::MemberStatus* last_status(const Observed& observed, Role role, int index) {
  const std::string name = pod_name(observed.job, role, index, wanted_attempt(observed.job, role, index));
  const auto& members = observed.job.status.members;
  const auto found = std::ranges::find_if(members, [&](const api::MemberStatus& each) {
    return each.role == role && each.index == index && each.pod == name;
  });
  return found == members.end() ? nullptr : &*found;
}

bool says_finished(const api::MemberStatus& member) {
  return member.phase == cluster::pod_phase_name(cluster::PodPhase::kSucceeded) ||
         member.phase == kFinishedPhase;
}

bool has_finished(const Observed& observed, Role role, int index) {
  if (role == Role::kServer && api::is_member(observed.job, role)) return false;
  const cluster::Pod* pod = find_pod(observed, role, index);
  const bool ended = pod != nullptr && pod->ended();
  const bool succeeded = ended && pod->phase == cluster::PodPhase::kSucceeded;
  const bool well = succeeded || (ended && pod->exit_code == 0);  // the process, whatever became of its pod
  if (ended && !pod->deleting) {
    if (succeeded) return true;
    if (!well && !diagnosis::disruption_of(*pod)) return false;
  }
  if ((well && is_built_in(observed.job, role)) || reported_finished(observed, role, index)) return true;
  const api::MemberStatus* last = last_status(observed, role, index);
  return last != nullptr && says_finished(*last);
}

bool has_failed(const Observed& observed, const cluster::Pod& pod) {
  return pod.phase == cluster::PodPhase::kFailed && !pod.deleting && is_needed(observed, pod) &&
         !has_finished(observed, pod.spec.role, pod.spec.index);
}

bool has_failed_auxiliary(const Observed& observed, const cluster::Pod& pod) {
  if (api::is_member(observed.job, pod.spec.role) || pod.phase != cluster::PodPhase::kFailed) return false;
  if (!pod.deleting || pod.ended_first) return true;
  const api::MemberStatus* last = last_status(observed, pod.spec.role, pod.spec.index);
  return last != nullptr && last->pod == pod.spec.name &&
         last->phase == cluster::pod_phase_name(cluster::PodPhase::kFailed);
}

bool view_runs(const Observed& observed) {
  return observed.report && observed.report->state == JobState::kRunning;
}

bool view_goes_on(const Observed& observed) {
  return view_runs(observed) ||
         (observed.report && observed.job.status.phase == api::Phase::kRunning &&
          observed.report->state == JobState::kForming && observed.report->generation.value == 0);
}

bool is_lost(const Observed& observed, Role role, int index) {
  const std::int64_t wanted = wanted_attempt(observed.job, role, index);
  return observed.report && std::ranges::any_of(observed.report->lost, [&](const LostMember& each) {
           return each.fault.role == role && each.fault.index == index &&
                  attempt_in(each.fault.pod).value_or(wanted) >= wanted;
         });
}

bool others_live(const Observed& observed, Role role, int index) {
  return std::ranges::any_of(observed.pods, [&](const cluster::Pod& pod) {
    const bool other = pod.spec.role != role || pod.spec.index != index;
    return other && api::is_member(observed.job, pod.spec.role) && !pod.ended() && !pod.deleting &&
           !is_lost(observed, pod.spec.role, pod.spec.index);
  });
}

bool may_be_spare(const Observed& observed, const Slot& slot) {
  const bool starts_all = api::restart_scope(observed.job, slot.role) == api::RestartScope::kJob;
  if (observed.report && is_elastic(observed.job, slot.role)) return !starts_all;
  const Slot leader = leader_slot(observed.job);
  const api::Strategy& strategy = observed.job.spec.strategy;
  const bool waits_for_all = strategy.synchronization == api::Synchronization::kSynchronous &&
                             strategy.backup_workers == 0 &&
                             !strategy.parameter_server.gradients_per_step.has_value();
  return observed.report && strategy.type == api::StrategyType::kParameterServer && !waits_for_all &&
         slot.role == Role::kWorker && !(leader.role == slot.role && leader.index == slot.index);
}

bool is_needed(const Observed& observed, const cluster::Pod& pod) {
  return api::is_member(observed.job, pod.spec.role) && !is_lost(observed, pod.spec.role, pod.spec.index);
}

Duration grace_of(const Observed& observed, const cluster::Pod& pod, Duration grace) {
  if (grace == Duration::zero()) return grace;
  const bool saves = may_save(observed, pod);
  const auto& replica = api::replica_spec(observed.job, pod.spec.role);
  const bool in_order = grace >= observed.limits.stop_grace;
  if (replica && replica->termination_grace_seconds && (saves || in_order))
    return std::max(kShortestGrace, Duration(std::chrono::seconds(*replica->termination_grace_seconds)));
  return saves ? std::max(grace, observed.limits.save_grace) : grace;
}

void delete_running_pods(const Observed& observed, Duration grace, const std::string& reason, Plan& plan) {
  for (const cluster::Pod& pod : observed.pods) {
    if (pod.all_ended() || (pod.deleting && grace > Duration::zero())) continue;
    plan.actions.push_back(
        DeletePod{pod.spec.ns, pod.spec.name, pod.uid, grace_of(observed, pod, grace), reason});
  }
}

void clean_pods(const Observed& observed, Duration grace, const std::string& reason, Plan& plan) {
  const api::CleanPodPolicy policy = observed.job.spec.run_policy.clean_pod_policy;
  if (policy == api::CleanPodPolicy::kNone) return;
  delete_running_pods(observed, grace, reason, plan);
  if (policy != api::CleanPodPolicy::kAll) return;
  for (const cluster::Pod& pod : observed.pods) {
    if (!pod.all_ended() || pod.deleting) continue;
    plan.actions.push_back(DeletePod{pod.spec.ns, pod.spec.name, pod.uid, grace, reason});
  }
}

void note_unknown(const Observed& observed, api::Status& status) {
  for (const api::Condition& each : status.conditions) {
    if (!each.unknown) continue;
    const bool value = each.type == api::kCreated || each.type == api::name(status.phase);
    set_condition(observed, each.type, value, "SaidAgain",
                  str_cat("it said Unknown; the job is ", api::name(status.phase)), status);
  }
}

void enter_phase(const Observed& observed, api::Phase phase, const std::string& reason,
                 const std::string& message, Plan& plan) {
  api::Status& status = plan.status;
  if (!may_enter(status.phase, phase)) return;
  for (const api::Condition& each : status.conditions) {
    if (each.status && each.type != api::name(phase) && is_of_a_phase(each))
      set_condition(observed, each.type, false, reason, message, status);
  }
  status.phase = phase;
  status.reason = reason;
  status.message = message;
  if (phase != api::Phase::kStarting)
    set_condition(observed, api::name(phase), true, reason, message, status);
  const std::string why = str_cat("the job's phase is now ", api::name(phase));
  record_event(observed, is_bad_news(phase, reason), reason, message, why, plan);
  plan.status_reason = message;
}

void end_job(const Observed& observed, api::Phase phase, const std::string& reason,
             const std::string& message, Plan& plan) {
  if (is_terminal(plan.status.phase)) return;
  enter_phase(observed, phase, reason, message, plan);
  plan.status.fault.reset();
  plan.status.completion_time = observed.now;
}

std::string what_is_lost(const Observed& observed) {
  const api::Status& status = observed.job.status;
  const bool trained = status.progress.step > 0 || !status.last_checkpoint.empty();
  if (observed.keeps_checkpoints || !trained) return "";
  const std::string lost = pluralize(status.progress.step, "step is", "steps are");
  return str_cat(
      "; its checkpoints go with its pods: ", status.progress.step > 0 ? str_cat(lost, " lost, and ") : "",
      "training begins anew at step 0");
}

void record_event(const Observed& observed, bool warning, const std::string& reason,
                  const std::string& message, const std::string& why, Plan& plan) {
  RecordEvent record;
  record.event = {observed.job.metadata.ns, observed.job.metadata.name, warning, reason, message,
                  observed.job_uid};
  record.reason = why;
  plan.actions.emplace_back(std::move(record));
}

void requeue(Duration wait, Plan& plan) {
  wait = std::max(wait, Duration::zero());
  if (!plan.requeue_after || wait < *plan.requeue_after) plan.requeue_after = wait;
}

}  // namespace paceline::plan
