// Copies what is known into the status: members, view, progress, results; a job whose members train is
// Running.

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>

#include "base/pluralize.h"
#include "base/text.h"
#include "controller/diagnosis/straggler_text.h"
#include "controller/diagnosis/view_text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pods.h"
#include "controller/plan/rules.h"
#include "controller/plan/stragglers.h"
#include "controller/plan/suspension.h"

namespace paceline::plan {

namespace {

const ReportedMember* find_member(const Observed& observed, Role role, int index) {
  const std::optional<JobReport>& report = observed.report ? observed.report : observed.told;
  if (!report) return nullptr;
  const auto& members = report->members;
  const auto found = std::ranges::find_if(
      members, [&](const ReportedMember& member) { return member.role == role && member.index == index; });
  return found == members.end() ? nullptr : &*found;
}

// The status says so once it is told why.
bool is_told_lost(const Observed& observed, Role role, int index) {
  if (!is_lost(observed, role, index)) return false;
  if (!observed.report || has_successor(observed.job, role)) return true;
  return std::ranges::none_of(observed.report->lost, [&](const LostMember& lost) {
    return lost.fault.role == role && lost.fault.index == index && awaits_end(observed, lost);
  });
}

api::MemberStatus member_status(const Observed& observed, const cluster::Pod& pod) {
  api::MemberStatus status;
  status.role = pod.spec.role;
  status.index = pod.spec.index;
  status.pod = pod.spec.name;
  status.host = pod.host;
  status.pid = pod.pid;
  // A pod that is deleted after its work was done, or after an auxiliary pod failed, keeps its last phase.
  const bool finished = has_finished(observed, pod.spec.role, pod.spec.index);
  const bool leaves = pod.deleting && !finished && !has_failed_auxiliary(observed, pod);
  status.phase = leaves ? "Deleting" : cluster::pod_phase_name(pod.phase);
  if (finished && pod.phase != cluster::PodPhase::kSucceeded) status.phase = kFinishedPhase;
  const ReportedMember* member = find_member(observed, pod.spec.role, pod.spec.index);
  if (is_told_lost(observed, pod.spec.role, pod.spec.index)) status.phase = kLostPhase;
  // An earlier pod of its place, in this attempt or the one before, has told of itself alone.
  if (member == nullptr || (!member->pod.empty() && member->pod != pod.spec.name)) return status;
  status.rank = member->rank;
  status.step = member->step;
  status.telemetry = member->telemetry;
  const bool says_phase = observed.report && !member->phase.empty();
  if (status.phase != kLostPhase && !finished && !pod.ended() && !leaves && says_phase)
    status.phase = member->phase;
  return status;
}

// The counts stay of a part that nobody tells of any more.
void keep_counts(const MemberTelemetry& before, MemberTelemetry& now) {
  MemberTelemetry counts = counts_of(before);
  now.bytes_sent = std::max(now.bytes_sent, counts.bytes_sent);
  now.dropped_samples = std::max(now.dropped_samples, counts.dropped_samples);
  if (!now.staleness) now.staleness = std::move(counts.staleness);
  if (!now.server) now.server = std::move(counts.server);
  if (!now.gpu) now.gpu = std::move(counts.gpu);
}

// Once an attempt in the job's new size has pods, those of the last are known to have ended: the ones that
// have no place in it are forgotten.
void forget_unwanted(const Observed& observed, api::Status& status) {
  const bool begun = std::ranges::any_of(
      observed.pods, [&](const cluster::Pod& pod) { return api::is_member(observed.job, pod.spec.role); });
  if (!begun || status.restarts.size != api::member_count(observed.job)) return;
  std::erase_if(status.members, [&](const api::MemberStatus& member) {
    const auto& replica = api::replica_spec(observed.job, member.role);
    return !replica || member.index >= replica->places();
  });
}

// A pod that is gone keeps its last word; of a job that has ended it was deleted, if it had not ended itself.
// How far it came, what its gradients came to, and what a server and a GPU have counted, stay where nobody
// tells of them any more. The sum of the samples that were left out is over all members that the job has had.
void copy_members(const Observed& observed, api::Status& status) {
  forget_unwanted(observed, status);
  for (api::MemberStatus& member : status.members) {
    const bool here = std::ranges::any_of(
        observed.pods, [&](const cluster::Pod& pod) { return pod.spec.name == member.pod; });
    const bool ended = says_finished(member) || member.phase == "Failed" || member.phase == kLostPhase;
    if (!here && !ended && is_terminal(status.phase)) member.phase = "Deleted";
  }
  const auto order = [](const api::MemberStatus& member) { return std::tuple(member.role, member.index); };
  for (const cluster::Pod& pod : observed.pods) {
    api::MemberStatus now = member_status(observed, pod);
    const auto place = std::ranges::lower_bound(status.members, order(now), {}, order);
    const bool has_place = place != status.members.end() && order(*place) == order(now);
    const bool is_known = has_place && place->pod == now.pod;
    const std::int64_t told = is_known ? place->telemetry.dropped_samples : 0;
    if (is_known) {
      now.step = std::max(now.step, place->step);
      keep_counts(place->telemetry, now.telemetry);
    }
    status.progress.dropped_samples += now.telemetry.dropped_samples - told;
    if (has_place) {
      *place = now;
    } else {
      status.members.insert(place, now);
    }
  }
}

// A later attempt resumes from an earlier step, as does a view, and may finish at one. While rank 0 loads
// that, it has not told of any; nor has it to a coordinator that began when training was over. What was left
// out is the sum of what members have counted.
void copy_progress(const JobReport& report, api::Status& status) {
  if (report.progress.step == 0 && status.progress.step > 0) {
    if (!is_final(report.state)) return;
    status.progress.goodput = report.progress.goodput;
    status.progress.goodput_seconds = report.progress.goodput_seconds;
    return;
  }
  const std::int64_t dropped = status.progress.dropped_samples;
  status.progress = report.progress;
  status.progress.dropped_samples = dropped;
}

void copy_report(const JobReport& report, api::Status& status) {
  status.view.generation = std::max(status.view.generation, report.generation);
  const auto in_view =
      std::ranges::count_if(report.members, [](const ReportedMember& member) { return member.rank >= 0; });
  if (in_view > 0) status.view.size = in_view;
  copy_progress(report, status);
  if (!report.model_path.empty()) status.model = report.model_path;
  if (!report.checkpoint_path.empty()) status.last_checkpoint = report.checkpoint_path;
}

// Of members that were told to leave: what they saved then is the newest, whatever attempt comes next.
void copy_last_words(const JobReport& report, api::Status& status) {
  if (!report.checkpoint_path.empty()) status.last_checkpoint = report.checkpoint_path;
  copy_progress(report, status);
}

// Members that were told to leave have left: by now it is known where they stood, and what they saved.
void note_suspended(const Observed& observed, const Observed& whole, Plan& plan) {
  api::Status& status = plan.status;
  const bool left =
      whole.report && is_final(whole.report->state) && whole.report->attempt < status.restarts.attempt;
  if (status.phase != api::Phase::kSuspended || !left) return;
  status.message = plan.status_reason = text_of(suspension_of(observed, *whole.report, status));
  set_condition(observed, api::name(api::Phase::kSuspended), true, status.reason, status.message, status);
}

// What lay in pods went with them, whatever their last words were.
void forget_lost_checkpoints(const Observed& observed, api::Status& status) {
  const bool between = status.phase == api::Phase::kSuspended || status.phase == api::Phase::kRestarting ||
                       status.phase == api::Phase::kStarting;
  const bool failed = status.phase == api::Phase::kFailed;
  if (observed.keeps_checkpoints || (!between && !failed)) return;
  status.last_checkpoint.clear();
  if (failed) return;
  status.progress = {.dropped_samples = status.progress.dropped_samples,
                     .goodput_seconds = status.progress.goodput_seconds};
}

// Training goes on without a checkpoint that can't be written, so that nobody would notice: said once, until
// one is written again.
void note_last_save(const Observed& observed, const JobReport& report, Plan& plan) {
  if (!report.last_save) return;
  const auto& [step, error] = *report.last_save;
  const auto known = std::ranges::find(plan.status.conditions, api::kCheckpointFailed, &api::Condition::type);
  const bool was_bad = known != plan.status.conditions.end() && known->status;
  if (error.empty() != was_bad) return;
  const std::string message = was_bad ? str_cat("the checkpoint of step ", step, " is written")
                                      : str_cat(error, "; earlier checkpoints are kept");
  const char* const reason = was_bad ? kCheckpointSaved : kCheckpointNotSaved;
  set_condition(observed, api::kCheckpointFailed, !was_bad, reason, message, plan.status);
  record_event(observed, !was_bad, reason, message,
               was_bad ? "checkpoints are written again" : "a checkpoint could not be written", plan);
}

// Somebody has said that the job can't be run as it is; now it can.
void note_mended(const Observed& observed, api::Status& status) {
  const auto said = std::ranges::find(status.conditions, api::kInvalidSpec, &api::Condition::type);
  if (said == status.conditions.end() || !said->status) return;
  set_condition(observed, api::kInvalidSpec, false, "Mended", "the job goes on", status);
}

// A ring that had lost a member, or was to have another size, is whole again; one that waited for more
// members trains again.
void note_whole(const Observed& observed, api::Status& status) {
  const bool waited = status.reason == kTooFewMembers;
  const bool is_news =
      waited || status.reason == kMemberReplaced || status.reason == api::name(api::RestartCause::kResized);
  if (status.phase != api::Phase::kRunning || !is_elastic(observed.job) || !is_news) return;
  const bool misses = !observed.report->lost.empty() && api::standby_count(observed.job) == 0;
  if (!waited && (misses || status.view.size != api::member_count(observed.job))) return;
  status.reason = "MembersTrain";
  status.message =
      str_cat("view ", observed.report->generation.value, " with ", status.view.size, " members trains");
}

// Since the status that this pass began with.
bool replaced_now(const Observed& observed, const api::Status& status) {
  return status.restarts.replacements != observed.job.status.restarts.replacements;
}

// Said once: the status remembers it.
void note_view_change(const Observed& observed, Plan& plan) {
  const auto& change = observed.report->view_change;
  std::optional<api::ViewChange>& told = plan.status.view.change;
  if (!change || told == change) return;
  told = change;
  record_event(observed, false, "ViewChanged", diagnosis::text_of(*change), "a view has taken its first step",
               plan);
}

bool has_even_shares(const JobReport& report) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const ReportedMember& member : report.members) {
    if (member.rank < 0) continue;
    least = std::min(least, member.telemetry.samples);
    most = std::max(most, member.telemetry.samples);
  }
  return most - least <= 1;
}

// Likewise. Another coordinator has set none where it goes on with those of the one before, and where it
// began with even ones.
void note_rebalance(const Observed& observed, Plan& plan) {
  const auto& rebalance = observed.report->rebalance;
  std::optional<api::Rebalance>& told = plan.status.view.rebalance;
  if (!rebalance && has_even_shares(*observed.report)) told.reset();
  if (!rebalance || told == rebalance) return;
  told = rebalance;
  record_event(observed, false, kStragglerRebalanced, rebalance->message,
               "a view has other shares of the global batch", plan);
}

bool is_same(const api::Straggler& a, const api::Straggler& b) {
  return a.kind == b.kind &&
         (a.kind == api::StragglerKind::kAllSlow || (a.pod == b.pod && a.peer_pod == b.peer_pod));
}

const api::Straggler* find_same(const std::vector<api::Straggler>& all, const api::Straggler& one) {
  const auto found =
      std::ranges::find_if(all, [&](const api::Straggler& each) { return is_same(each, one); });
  return found == all.end() ? nullptr : &*found;
}

void forget_stragglers(const Observed& observed, const char* reason, const char* why, api::Status& status) {
  status.stragglers.clear();
  set_condition(observed, api::kStraggling, false, reason, why, status);
}

// A member knows its container's host name, and the cluster its node.
void name_node(const Observed& observed, api::Straggler& straggler) {
  const cluster::Pod* const pod = find_pod(observed, straggler.role, static_cast<int>(straggler.index));
  const bool is_its = pod != nullptr && pod->spec.name == straggler.pod && !pod->host.empty();
  if (straggler.kind == api::StragglerKind::kAllSlow || !is_its || straggler.host == pod->host) return;
  straggler.host = pod->host;
  straggler.message = diagnosis::message_of(straggler);
}

// The trouble of the nodes at hand is evidence, too.
void note_node_trouble(const Observed& observed, api::Straggler& straggler) {
  for (const std::string& name : {straggler.pod, straggler.peer_pod}) {
    const auto pod = std::ranges::find_if(
        observed.pods, [&](const cluster::Pod& each) { return each.spec.name == name && !name.empty(); });
    if (pod == observed.pods.end()) continue;
    const auto trouble = observed.host_troubles.find(pod->host);
    if (trouble == observed.host_troubles.end() || trouble->second.empty()) continue;
    straggler.node_trouble +=
        str_cat(straggler.node_trouble.empty() ? "" : "; ", "node ", pod->host, " has ", trouble->second);
  }
  if (!straggler.node_trouble.empty()) straggler.message += str_cat("; ", straggler.node_trouble);
}

// The condition says which are found now; events tell of each once.
void note_stragglers(const Observed& observed, Plan& plan) {
  if (observed.job.spec.stragglers.action == api::StragglerPolicyAction::kIgnore) {
    if (!plan.status.stragglers.empty())
      forget_stragglers(observed, "NotLookedFor", "spec.stragglers.action is Ignore", plan.status);
    return;
  }
  const JobReport& report = observed.report ? *observed.report : *observed.told;
  if (!report.stragglers) return;
  std::vector<api::Straggler> now = *report.stragglers;
  std::string all;
  for (api::Straggler& each : now) {
    name_node(observed, each);
    note_node_trouble(observed, each);
    all += str_cat(all.empty() ? "" : "; ", each.message);
    const api::Straggler* const known = find_same(plan.status.stragglers, each);
    each.since = known != nullptr ? known->since : observed.now;
    if (known != nullptr) continue;
    record_event(observed,
                 each.kind == api::StragglerKind::kSlow || each.kind == api::StragglerKind::kSlowLink,
                 "StragglerDetected", each.message, "a member holds the others back", plan);
  }
  for (const api::Straggler& each : plan.status.stragglers) {
    if (find_same(now, each) != nullptr) continue;
    record_event(observed, false, "StragglerCleared", diagnosis::end_of(each),
                 "a straggler holds the others back no more", plan);
  }
  if (!now.empty()) {
    set_condition(observed, api::kStraggling, true, api::name(now.front().kind), all, plan.status);
  } else if (!plan.status.stragglers.empty()) {
    set_condition(observed, api::kStraggling, false, "NoneFound", "no member holds the others back",
                  plan.status);
  }
  plan.status.stragglers = std::move(now);
  act_on_stragglers(observed, plan);
}

std::string shortage_text(const Shortage& shortage, const api::TrainingJob& job) {
  const auto& worker = job.spec.replica_specs.worker;
  const std::optional<std::int64_t> least = worker ? worker->min_replicas : std::nullopt;
  return str_cat("waiting for ", pluralize(shortage.missing, "more member", "more members"), ": ",
                 least ? str_cat("minReplicas is ", *least, ", ") : "", shortage.here,
                 shortage.here == 1 ? " is here" : " are here");
}

// The phase stays: the members are there, and hold what they have trained.
void note_shortage(const Observed& observed, Plan& plan) {
  const auto& shortage = observed.report->shortage;
  api::Status& status = plan.status;
  if (!shortage || status.phase != api::Phase::kRunning || replaced_now(observed, status)) return;
  const bool is_news = status.reason != kTooFewMembers;
  status.reason = kTooFewMembers;
  status.message = plan.status_reason = shortage_text(*shortage, observed.job);
  if (is_news)
    record_event(observed, true, kTooFewMembers, status.message, "too few members for a view", plan);
}

// REQUIRES: there is such a report, which may be an earlier attempt's.
void note_told(const Observed& observed, Plan& plan) {
  if (observed.told->attempt != observed.job.status.restarts.attempt) return;
  copy_progress(*observed.told, plan.status);
  note_stragglers(observed, plan);
}

void note_running(const Observed& observed, Plan& plan) {
  if (observed.report) {
    note_preflight(observed, plan);
    if (observed.report->state != JobState::kRunning) return note_shortage(observed, plan);
    note_whole(observed, plan.status);
    note_view_change(observed, plan);
    note_rebalance(observed, plan);
    note_stragglers(observed, plan);
    const std::string trains = str_cat("view ", observed.report->generation.value, " with ",
                                       plan.status.view.size, " members trains");
    enter_phase(observed, api::Phase::kRunning, "MembersTrain", trains, plan);
    if (plan.status.reason == "MembersTrain") {  // of the newest view
      plan.status.message = trains;
      set_condition(observed, api::name(api::Phase::kRunning), true, "MembersTrain", trains, plan.status);
    }
    return;
  }
  std::int64_t running = 0, finished = 0;
  for (const Slot& slot : desired_slots(observed.job)) {
    if (!api::is_member(observed.job, slot.role)) continue;
    const cluster::Pod* pod = find_pod(observed, slot.role, slot.index);
    if (pod != nullptr && pod->phase == cluster::PodPhase::kRunning) {
      ++running;
    } else if (has_finished(observed, slot.role, slot.index)) {
      ++finished;
    }
  }
  if (running == 0 || running + finished < api::member_count(observed.job)) return;
  std::string all = pluralize(running, "pod runs", "pods run");
  if (finished > 0) {
    all += str_cat(", ", pluralize(finished, "has finished", "have finished"));
  } else if (running > 1) {
    all = str_cat("all ", all);
  }
  enter_phase(observed, api::Phase::kRunning, "PodsRun", all, plan);
  if (observed.told) note_told(observed, plan);
  if (plan.status.reason != kMemberReplaced || replaced_now(observed, plan.status)) return;
  plan.status.reason = "PodsRun";
  plan.status.message = all;
}

// Counts members of the present attempt whose pods are gone, as the status has kept them.
void count_gone(const Observed& observed, const api::MemberStatus& member, api::ReplicaStatus& counts) {
  const bool succeeded = says_finished(member);
  if (!succeeded && member.phase != cluster::pod_phase_name(cluster::PodPhase::kFailed)) return;
  const auto index = static_cast<int>(member.index);
  if (find_pod(observed, member.role, index) != nullptr) return;
  if (last_status(observed, member.role, index) == &member) ++(succeeded ? counts.succeeded : counts.failed);
}

void count_pod(const Observed& observed, const cluster::Pod& pod, api::ReplicaStatus& counts) {
  const bool succeeded =
      pod.ended() && (pod.phase == cluster::PodPhase::kSucceeded ||
                      has_finished(observed, pod.spec.role, pod.spec.index));  // whatever became of its pod
  counts.ready += pod.phase == cluster::PodPhase::kRunning && !pod.deleting ? 1 : 0;
  counts.succeeded += succeeded ? 1 : 0;
  counts.failed += pod.ended() && !succeeded ? 1 : 0;
}

void count_replicas(const Observed& observed, const Observed& whole, api::Status& status) {
  status.replica_statuses.clear();
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    if (!api::replica_spec(whole.job, role)) continue;
    api::ReplicaStatus counts{.role = role};
    for (const cluster::Pod& pod : whole.pods) counts.active += pod.spec.role == role && !pod.ended() ? 1 : 0;
    for (const cluster::Pod& pod : observed.pods) {
      if (pod.spec.role == role) count_pod(observed, pod, counts);
    }
    for (const api::MemberStatus& member : observed.job.status.members) {
      if (member.role == role) count_gone(observed, member, counts);
    }
    status.replica_statuses.push_back(counts);
  }
}

}  // namespace

void rule_status(const Observed& observed, const Observed& whole, Plan& plan) {
  plan.status.observed_generation = observed.generation;
  note_mended(observed, plan.status);
  count_replicas(observed, whole, plan.status);
  copy_members(observed, plan.status);
  // Of a job that has ended too: what members say as they leave comes after the decision to stop.
  if (whole.report && observed.report && whole.report->attempt < observed.report->attempt)
    copy_last_words(*whole.report, plan.status);
  if (whole.report) note_last_save(observed, *whole.report, plan);
  if (observed.report) copy_report(*observed.report, plan.status);
  note_suspended(observed, whole, plan);
  forget_lost_checkpoints(observed, plan.status);
  if (is_terminal(plan.status.phase)) plan.status.progress.eta_seconds.reset();
  if (!plan.status.stragglers.empty() && plan.status.phase != api::Phase::kRunning)
    forget_stragglers(observed, "NotRunning", "no member trains", plan.status);
  if (plan.status.phase == api::Phase::kSucceeded)
    plan.status.progress = finished(observed.job, plan.status.progress);
  const bool same_attempt = plan.status.restarts.attempt == observed.job.status.restarts.attempt;
  if (!is_terminal(plan.status.phase) && same_attempt) note_running(observed, plan);
  const api::RunPolicy& policy = observed.job.spec.run_policy;
  const bool any_left = std::ranges::any_of(whole.pods, [](const cluster::Pod& pod) { return !pod.ended(); });
  const bool may_stay = policy.clean_pod_policy == api::CleanPodPolicy::kNone && !whole.deleted;
  plan.done = is_terminal(plan.status.phase) && (!any_left || may_stay);
  if (plan.done && !policy.ttl_seconds_after_finished) plan.requeue_after.reset();
  if (!is_terminal(plan.status.phase) && (observed.report || observed.told))
    requeue(observed.limits.refresh, plan);
  if (plan.status_reason.empty()) plan.status_reason = plan.status.message;
}

}  // namespace paceline::plan
