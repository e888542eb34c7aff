// One member lost: the ring starts again, or the job is lost, by restartPolicy and backoffLimit (restart.h).
// The message names the root cause, not its victims (controller/diagnosis). What a pod's end alone says may
// be a victim's view: while there is a coordinator that has not spoken, its verdict is waited for,
// Limits::verdict_grace long (where all that ended were told to, Limits::save_grace); likewise,
// Limits::exit_grace long, for the exit status of a member that it declares dead. Where members of an earlier
// coordinator's view ended before they found this one, a pod of theirs that somebody deleted meanwhile is the
// reason.

#include <algorithm>
#include <utility>

#include "base/pluralize.h"
#include "base/process_end.h"
#include "controller/diagnosis/fault_text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/faults.h"
#include "controller/plan/pod_observations.h"
#include "controller/plan/pods.h"
#include "controller/plan/restart.h"
#include "controller/plan/rules.h"
#include "controller/plan/trouble.h"

namespace paceline::plan {

namespace {

// A lost member: another one in its place, another attempt, or the end.
void fail_by(const Observed& observed, Failure failure, Plan& plan) {
  if (starts_in_place(observed.job, failure.fault.role))
    return replace(observed, std::move(failure), Duration::zero(), plan);
  if (!restart_by_policy(observed, failure, plan)) end_by(observed, std::move(failure), plan);
}

// No member is at fault.
void fail(const Observed& observed, const std::string& reason, const std::string& message, Plan& plan) {
  end_job(observed, api::Phase::kFailed, reason, message, plan);
  clean_pods(observed, observed.limits.failure_grace, str_cat("the job has failed: ", message), plan);
}

// How long ago the first pod was seen to have failed.
Duration since_first_failure(const Observed& observed) {
  Duration longest{};
  for (const cluster::Pod& pod : observed.pods) {
    if (has_failed(observed, pod)) longest = std::max(longest, seen_for(observed, pod));
  }
  return longest;
}

Finding by_verdict(const Observed& observed, Plan& plan) {
  const api::Fault& told = *observed.report->fault;
  const Duration age = observed.report->fault_age;
  const cluster::Pod* pod = find_pod(observed, told.role, told.index);
  const bool has_end = told.signal || told.exit_code || pod == nullptr || pod->ended();
  const bool will_end = told.kind == api::FaultKind::kDead || api::is_own_word(told.kind);
  if (will_end && !has_end && age < observed.limits.exit_grace) {
    requeue(observed.limits.exit_grace - age, plan);
    return Finding::kAwaited;
  }
  fail_by(observed, Failure(fault_by_verdict(observed)), plan);
  return Finding::kDecided;
}

Finding by_pods(const Observed& observed, Plan& plan) {
  std::optional<api::Fault> fault = fault_by_pods(observed);
  if (!fault) return Finding::kNone;
  const bool may_explain = observed.report && fault->kind != api::FaultKind::kNotStarted;
  const Duration since = since_first_failure(observed);
  // A member that follows another one which was asked to stop leaves first: that one may be saving before it
  // says so.
  const bool follows = left_as_told(observed, *fault) && view_runs(observed);
  const Duration patience = follows ? observed.limits.save_grace : observed.limits.verdict_grace;
  if (may_explain && observed.report->state != JobState::kFailed && since < patience) {
    requeue(patience - since, plan);
    return Finding::kAwaited;
  }
  fail_by(observed, Failure(*std::move(fault)), plan);
  return Finding::kDecided;
}

bool by_report(const Observed& observed, Plan& plan) {
  if (!observed.report) return false;
  const JobReport& report = *observed.report;
  if (report.state != JobState::kFailed && report.state != JobState::kStopped) return false;
  const std::string said = report.reason.empty() ? "it gave no reason" : report.reason;
  fail(observed, report.state == JobState::kFailed ? "TrainingFailed" : "Stopped",
       str_cat("the coordinator ended the job at step ", report.progress.step, ": ", said), plan);
  return true;
}

bool by_creation(const Observed& observed, Plan& plan) {
  const int most = observed.limits.create_failures;
  if (!observed.create_failure || most == 0 || observed.create_failure->count < most) return false;
  const CreateFailure& failure = *observed.create_failure;
  fail(observed, kPodNotCreated,
       str_cat("pod ", failure.pod, " could not be created, ", failure.count,
               " times in a row: ", failure.error),
       plan);
  return true;
}

constexpr const char* kWhyRefused =
    ": the job's Secret was made anew, or its command or an admission webhook sets another PACELINE_TOKEN";

std::string why_absent(const Observed& observed) {
  const auto found = observed.coordinator_env.find("PACELINE_COORDINATOR");
  const std::string address =
      found == observed.coordinator_env.end() ? "" : str_cat(" (", found->second, ")");
  return str_cat("; its pod runs, and either can't reach PACELINE_COORDINATOR", address,
                 ": routes, a NetworkPolicy, or its command is none that attaches; its log tells");
}

// A running pod that never joined, or whose token its coordinator refuses; one whose work was done under an
// earlier coordinator need not. Of one that may be spare, whose view may go on, only its coordinator is told;
// also where its pod is being deleted, which never ends on a node that is dead.
bool by_absence(const Observed& observed, Plan& plan) {
  if (!observed.report) return false;
  const bool gathers = observed.report->state == JobState::kForming && observed.report->generation.value == 0;
  if (!gathers && (!is_elastic(observed.job) || is_final(observed.report->state))) return false;
  for (const cluster::Pod& pod : observed.pods) {
    if (pod.phase != cluster::PodPhase::kRunning || !is_needed(observed, pod)) continue;
    const bool spare = may_be_spare(observed, {pod.spec.role, pod.spec.index}) &&
                       (view_goes_on(observed) || observed.report->generation.value > 0);
    if (pod.deleting && !spare) continue;
    const bool joined = std::ranges::any_of(observed.report->members, [&](const ReportedMember& member) {
      return member.role == pod.spec.role && member.index == pod.spec.index &&
             (member.pod.empty() || member.pod == pod.spec.name);
    });
    if (joined || has_finished(observed, pod.spec.role, pod.spec.index)) continue;
    // A coordinator that has just begun gives those of an earlier one their time, too; and a clock may jump.
    const Duration waited = std::min(seen_for(observed, pod), observed.report->in_state);
    const Duration left = observed.limits.attach_timeout - waited;
    const bool refused =
        std::ranges::find(observed.report->refused, pod.uid) != observed.report->refused.end();
    if (!refused && left > Duration::zero()) {
      requeue(left, plan);
      continue;
    }
    const api::Observation seen = refused ? api::Observation{api::ObservationKind::kRefused, ""}
                                          : api::Observation{api::ObservationKind::kNotJoined,
                                                             format_duration(observed.limits.attach_timeout)};
    if (spare) {
      plan.absent.push_back({pod.spec.role, pod.spec.index, pod.spec.name, seen});
      continue;
    }
    Failure failure(diagnosis::diagnose(place_of(observed, pod.spec.role, pod.spec.index),
                                        api::Fault{.kind = diagnosis::kind_of(seen.kind),
                                                   .role = pod.spec.role,
                                                   .index = pod.spec.index,
                                                   .evidence = {seen}}));
    failure.message += refused ? std::string(kWhyRefused) : why_absent(observed);
    plan.absent.clear();
    fail_by(observed, std::move(failure), plan);
    return true;
  }
  return false;
}

// Its pod, which takes a lost one's place, was never made.
bool is_to_come(const Observed& observed, const Slot& slot) {
  const bool replaced = is_elastic(observed.job, slot.role) || starts_in_place(observed.job, slot.role);
  return replaced && last_status(observed, slot.role, slot.index) == nullptr;
}

void note_missing(const Observed& observed, Plan& plan) {
  for (const Slot& slot : desired_slots(observed.job)) {
    const bool missing = find_pod(observed, slot.role, slot.index) == nullptr &&
                         !has_finished(observed, slot.role, slot.index) && !is_to_come(observed, slot);
    const std::string name =
        pod_name(observed.job, slot.role, slot.index, wanted_attempt(observed.job, slot.role, slot.index));
    const bool known = std::ranges::find(plan.gone, name) != plan.gone.end();
    if (missing && !known && api::is_member(observed.job, slot.role)) plan.gone.push_back(name);
  }
}

// Somebody deletes a member's pod, or has deleted it, while the ring trains: nobody needs to wait for its end
// to know that the ring must start again. Where the policy is Never, what becomes of it decides; of one that
// is gone nothing more becomes. Whether one that may be spare is missed is for the coordinator to say: one
// that still gathers the members of an earlier coordinator's view is told that a pod is gone. Nobody misses
// one whose work is done.
bool by_deletion(const Observed& observed, Plan& plan) {
  if (plan.status.phase != api::Phase::kRunning) return false;
  for (const Slot& slot : desired_slots(observed.job)) {
    const auto& replica = api::replica_spec(observed.job, slot.role);
    if (!api::is_member(observed.job, slot.role) || is_lost(observed, slot.role, slot.index)) continue;
    if (has_finished(observed, slot.role, slot.index) || is_to_come(observed, slot)) continue;
    const bool never = replica->restart_policy == api::RestartPolicy::kNever;
    const cluster::Pod* found = find_pod(observed, slot.role, slot.index);
    if (found != nullptr && (never || !found->deleting || found->ended())) continue;
    const bool spare = may_be_spare(observed, slot);
    // A pod that a lost node runs is ended by nobody: its member may go on for hours.
    if (spare && found != nullptr && diagnosis::disruption_of(*found) == api::RestartCause::kNodeLost)
      plan.gone.push_back(found->spec.name);
    if (spare && (found != nullptr || (view_runs(observed) && !is_elastic(observed.job)))) continue;
    if (found == nullptr) note_missing(observed, plan);
    if (spare && (view_goes_on(observed) || is_elastic(observed.job))) continue;
    fail_by(observed, Failure(diagnosis::diagnose(place_of(observed, slot.role, slot.index))), plan);
    plan.failed_pod.reset();  // its log goes with it
    return true;
  }
  return false;
}

// Whether the member at fault may have lost another one, and told nobody: this coordinator never heard it,
// and it ended as such a member does.
bool may_be_victim(const Observed& observed) {
  if (!observed.report || observed.report->generation.value > 0) return false;
  const auto& told = observed.report->fault;
  using enum api::FaultKind;
  const bool ended = told && (told->kind == kDead || told->kind == kKilled || told->kind == kExited);
  if (told && (!told->pod.empty() || !ended)) return false;
  const std::optional<api::Fault> fault = told ? fault_by_verdict(observed) : fault_by_pods(observed);
  return fault && !fault->signal && (fault->exit_code == kExitFailed || left_as_told(observed, *fault));
}

}  // namespace

Finding rule_failure(const Observed& observed, Plan& plan) {
  if (training_finished(observed)) return Finding::kNone;
  if (may_be_victim(observed) && by_deletion(observed, plan)) return Finding::kDecided;
  if (observed.report && observed.report->fault) return by_verdict(observed, plan);
  if (const Finding found = by_pods(observed, plan); found != Finding::kNone) return found;
  const bool decided = by_deletion(observed, plan) || by_report(observed, plan) ||
                       by_creation(observed, plan) || by_absence(observed, plan) ||
                       restart_by_auxiliary(observed, plan);
  return decided ? Finding::kDecided : Finding::kNone;
}

}  // namespace paceline::plan
