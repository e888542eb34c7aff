#include "controller/plan/stragglers.h"

#include <algorithm>

#include "base/pluralize.h"
#include "base/process_end.h"
#include "base/text.h"
#include "controller/diagnosis/preflight_text.h"
#include "controller/diagnosis/straggler_text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/pods.h"
#include "controller/plan/rules.h"

namespace paceline::plan {

namespace {

using api::ReplacementOutcome;
using api::Straggler;
using api::StragglerAction;
using api::StragglerReplacement;

struct Judgement {
  StragglerAction action = StragglerAction::kReport;
  std::string why;
  bool begins = false;            // its replacement, now
  std::optional<Duration> later;  // look again
};

const StragglerReplacement* under_way(const api::Status& status) {
  const auto found = std::ranges::find(status.straggler_replacements, ReplacementOutcome::kUnderWay,
                                       &StragglerReplacement::outcome);
  return found == status.straggler_replacements.end() ? nullptr : &*found;
}

bool is_within(const api::StragglerPolicy& policy, WallTime then, WallTime now) {
  return now - then < std::chrono::seconds(policy.window_seconds);
}

// Its node is not known to be slow, and it uses nothing of the budget.
bool is_requested(const StragglerReplacement& each) {
  return each.cause == api::StragglerCause::kRequested;
}

bool is_of(const StragglerReplacement& each, const Straggler& straggler) {
  return each.role == straggler.role && each.index == straggler.index;
}

// The time is in the transfer, and nothing that it tells of itself, or the cluster of its node, says why:
// another pod, on the same network, may be as slow.
bool may_be_a_link(const Straggler& straggler) {
  using enum api::StragglerCause;
  const bool own = straggler.cause == kCpuQuota || straggler.cause == kCpuContention ||
                   straggler.cause == kMemoryPressure || straggler.cause == kGpuSlowdown ||
                   straggler.cause == kStopped;
  return straggler.part == "transfer" && !own && straggler.node_trouble.empty();
}

std::string seconds_text(double seconds) {
  return format_duration(
      std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(seconds)));
}

// A share of the time that steps take: the job is done so much sooner without it.
double lost_share(const Straggler& straggler) {
  return straggler.own_ms > 0 ? std::clamp(straggler.lost_ms / straggler.own_ms, 0.0, 1.0) : 0;
}

// The reason that an earlier replacement in this place forbids another one.
std::optional<std::string> was_tried(const api::TrainingJob& job, const Straggler& straggler, WallTime now) {
  for (const StragglerReplacement& each : job.status.straggler_replacements) {
    if (!is_of(each, straggler) || !is_within(job.spec.stragglers, each.at, now)) continue;
    if (has_passed_on(each.outcome) && !is_requested(each) && each.successor == straggler.pod)
      return str_cat("pod ", each.pod, " before it was slow, too: the node is not the cause");
    if (each.outcome == ReplacementOutcome::kNoSuccessor && each.pod == straggler.pod) return each.message;
  }
  return std::nullopt;
}

std::int64_t replaced_within(const api::TrainingJob& job, WallTime now) {
  return std::ranges::count_if(job.status.straggler_replacements, [&](const StragglerReplacement& each) {
    return !is_requested(each) && is_within(job.spec.stragglers, each.at, now);
  });
}

// Why a member that is slow is never replaced; empty: it may be.
std::string obstacle(const Observed& observed, const Straggler& straggler) {
  const api::TrainingJob& job = observed.job;
  const api::StragglerPolicy& policy = job.spec.stragglers;
  if (policy.action != api::StragglerPolicyAction::kReplace)
    return str_cat("spec.stragglers.action is ", api::name(policy.action));
  if (straggler.kind == api::StragglerKind::kAllSlow) return "so many have a cause in common";
  if (straggler.kind == api::StragglerKind::kSlowLink) return "another pod may have as slow a link";
  if (straggler.kind == api::StragglerKind::kMoreWork) return "another pod would have as much work";
  if (std::string why = successor_obstacle(job, straggler.role); !why.empty()) return why;
  if (may_be_a_link(straggler)) return "it may be its link to the others that is slow";
  if (straggler.factor < policy.factor)
    return str_cat(diagnosis::factor_text(straggler.factor), " is less than spec.stragglers.factor, ",
                   policy.factor);
  if (const auto tried = was_tried(job, straggler, observed.now)) return *tried;
  if (replacements_left(job, observed.now) <= 0)
    return str_cat(pluralize(replaced_within(job, observed.now), "slow member was", "slow members were"),
                   " replaced in the last ", format_duration(std::chrono::seconds(policy.window_seconds)),
                   " (spec.stragglers.maxReplacements)");
  return "";
}

Judgement judge(const Observed& observed, const api::Status& status, const Straggler& straggler) {
  using enum StragglerAction;
  // The coordinator decides on shares, and has said so.
  if (observed.job.spec.stragglers.action == api::StragglerPolicyAction::kRebalance && !straggler.why.empty())
    return {straggler.action, straggler.why};
  if (const StragglerReplacement* const now = under_way(status)) {
    const bool its = straggler.kind == api::StragglerKind::kSlow && is_of(*now, straggler);
    if (!its)
      return {straggler.kind == api::StragglerKind::kSlow ? kWait : kReport,
              str_cat("pod ", now->pod, " is replaced first")};
    const std::string& phase = observed.report->successor_phase;
    return {kReplace, str_cat("pod ", now->successor, " takes over", phase.empty() ? "" : ": ", phase)};
  }
  if (std::string why = obstacle(observed, straggler); !why.empty()) return {kReport, std::move(why)};
  const double share = lost_share(straggler), worth = observed.job.spec.stragglers.lost_seconds;
  const double lost =
      share * std::chrono::duration<double>(observed.now - straggler.since.value_or(observed.now)).count();
  const auto& left = observed.report->progress.eta_seconds;
  if (left && *left * share < worth)
    return {kWait, str_cat("the job ends in ", seconds_text(*left), ", and gains ",
                           seconds_text(*left * share), " by it: less than spec.stragglers.lostSeconds")};
  if (lost < worth) {
    const double wait = share > 0 ? (worth - lost) / share : 1;
    return {
        kWait,
        str_cat("the job has lost ", seconds_text(lost), " to it; it is replaced at ", seconds_text(worth)),
        false, std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(wait, 0.0, 1e6) * 1000) + 1)};
  }
  return {kReplace, "", true};
}

void add_replacement(StragglerReplacement replacement, api::Status& status) {
  auto& all = status.straggler_replacements;
  if (all.size() >= api::kMostStragglerReplacements) all.erase(all.begin());
  all.push_back(std::move(replacement));
}

// `next` says who is replaced and why. The successor's pod; it is made when the status says so.
std::string begin_handover(const Observed& observed, StragglerReplacement next, Plan& plan) {
  const auto index = static_cast<int>(next.index);
  const std::int64_t number = newest_number(observed.job, next.role, index) + 1;
  ++replacement_of(plan.status.restarts, next.role, next.index).successors;
  const cluster::Pod* const pod = find_pod(observed, next.role, index);
  next.at = observed.now;
  next.host = pod == nullptr ? "" : pod->host;
  next.successor = pod_name(observed.job, next.role, index, number);
  std::string successor = next.successor;
  add_replacement(std::move(next), plan.status);
  requeue(Duration::zero(), plan);
  return successor;
}

void replace_straggler(const Observed& observed, Straggler& straggler, Plan& plan) {
  const std::string successor = begin_handover(observed,
                                               {.role = straggler.role,
                                                .index = straggler.index,
                                                .pod = straggler.pod,
                                                .factor = straggler.factor,
                                                .cause = straggler.cause},
                                               plan);
  straggler.why = str_cat("pod ", successor, " takes over");
  record_event(observed, false, kStragglerReplacing,
               str_cat(straggler.message, "; pod ", successor, " is to take over"),
               "a slow member has cost the job spec.stragglers.lostSeconds", plan);
}

// The node of who was slow before is as good as any.
void note_as_slow(const Observed& observed, Plan& plan) {
  for (StragglerReplacement& each : plan.status.straggler_replacements) {
    const bool by_steps = each.factor > 0;  // else it failed a check, which its steps don't compare with
    if (each.outcome != ReplacementOutcome::kReplaced || !by_steps) continue;
    const auto successor = std::ranges::find_if(plan.status.stragglers, [&](const Straggler& straggler) {
      return straggler.kind == api::StragglerKind::kSlow && straggler.pod == each.successor;
    });
    const bool slow =
        successor != plan.status.stragglers.end() && 2 * (successor->factor - 1) > each.factor - 1;
    if (!slow) continue;
    each.outcome = ReplacementOutcome::kAsSlow;
    each.ended = observed.now;
    each.message = str_cat("pod ", each.successor, " is slow as pod ", each.pod,
                           " was: ", each.host.empty() ? "its node" : str_cat("node ", each.host),
                           " is not the cause, and is avoided no more");
    record_event(observed, true, kStragglerAsSlow, each.message,
                 "the successor of a slow member is slow, too", plan);
  }
}

// Why the one that is under way is over without having taken over, and how; nothing: it is not.
struct End {
  ReplacementOutcome outcome;
  std::string message;
};
std::optional<End> end_of(const Observed& whole, const StragglerReplacement& each) {
  const auto pod =
      std::ranges::find(whole.pods, each.successor,
                        [](const cluster::Pod& one) -> const std::string& { return one.spec.name; });
  const std::string stays = str_cat(", and pod ", each.pod, " keeps its place");
  if (pod != whole.pods.end() && pod->ended())
    return End{ReplacementOutcome::kNoSuccessor,
               str_cat("pod ", each.successor, " ended before it took over (",
                       exit_text(pod->exit_code, pod->signal), ")", stays)};
  if (whole.create_failure && whole.create_failure->pod == each.successor)
    return End{
        ReplacementOutcome::kNoSuccessor,
        str_cat("pod ", each.successor, " could not be created: ", whole.create_failure->error, stays)};
  if (whole.now - each.at >= kHandoverTimeout) {
    const std::string why =
        pod == whole.pods.end() || pod->message.empty() ? "" : str_cat(" (", pod->message, ")");
    return End{ReplacementOutcome::kNoSuccessor,
               str_cat("pod ", each.successor, " has not taken over within ",
                       format_duration(kHandoverTimeout), why, stays)};
  }
  const bool all_slow = std::ranges::any_of(
      whole.report->stragglers.value_or(std::vector<Straggler>()),
      [](const Straggler& one) { return one.kind == api::StragglerKind::kAllSlow && one.members > 0; });
  if (!is_requested(each) && std::ranges::count(whole.report->cleared, each.pod) > 0 && !all_slow)
    return End{ReplacementOutcome::kRecovered,
               str_cat("pod ", each.pod, " holds the others back no more", stays)};
  return std::nullopt;
}

// The job has no handover any more, though one is under way by its status: why that is over.
std::string end_without_it(const api::TrainingJob& job, const StragglerReplacement& each) {
  const auto index = static_cast<int>(each.index);
  const std::string over = str_cat(" before pod ", each.successor, " took over");
  const auto& replica = api::replica_spec(job, each.role);
  if (job.status.phase != api::Phase::kRunning)
    return str_cat("the job was ", api::name(job.status.phase), over);
  if (!replica || index >= replica->places())
    return str_cat("the job has no ", member_name(each.role, index), " any more", over);
  return str_cat("pod ", each.pod, " was lost", over, ", and pod ",
                 pod_name(job, each.role, index, wanted_attempt(job, each.role, index)), " has its place");
}

// The one that the coordinator has carried out, and the status does not tell of yet: perhaps it was given up
// meanwhile.
const StragglerReplacement* taken_over(const Observed& whole) {
  const api::TrainingJob& job = whole.job;
  if (job.status.phase != api::Phase::kRunning || !whole.report || !whole.report->handed_over) return nullptr;
  if (whole.report->attempt != job.status.restarts.attempt) return nullptr;
  const Incarnation& to = *whole.report->handed_over;
  const bool is_next = to.number > wanted_attempt(job, to.role, to.index) &&
                       to.number <= newest_number(job, to.role, to.index);
  const auto each =
      std::ranges::find(job.status.straggler_replacements, pod_name(job, to.role, to.index, to.number),
                        &StragglerReplacement::successor);
  return is_next && each != job.status.straggler_replacements.end() ? &*each : nullptr;
}

}  // namespace

std::vector<Incarnation> given_up(const api::TrainingJob& job) {
  const std::optional<Incarnation> to = handover_of(job);
  std::vector<Incarnation> numbers;
  for (const api::Replacement& each : job.status.restarts.replacements) {
    const auto index = static_cast<int>(each.index);
    const std::int64_t newest = newest_number(job, each.role, index);
    for (std::int64_t i = wanted_attempt(job, each.role, index) + 1; i <= newest; ++i) {
      if (Incarnation one{each.role, index, i}; one != to) numbers.push_back(one);
    }
  }
  return numbers;
}

std::optional<Incarnation> handover_of(const api::TrainingJob& job) {
  const StragglerReplacement* const each = under_way(job.status);
  if (each == nullptr || job.status.phase != api::Phase::kRunning) return std::nullopt;
  const auto index = static_cast<int>(each->index);
  const std::optional<std::int64_t> number = attempt_in(each->successor);
  const bool taken =
      number != newest_number(job, each->role, index) || number <= wanted_attempt(job, each->role, index);
  const auto& replica = api::replica_spec(job, each->role);
  if (taken || !replica || index >= replica->places()) return std::nullopt;
  return Incarnation{each->role, index, *number};
}

std::vector<std::string> slow_hosts(const api::TrainingJob& job, WallTime now) {
  std::vector<std::string> hosts;
  for (const StragglerReplacement& each : job.status.straggler_replacements) {
    const bool is_slow =
        each.outcome == ReplacementOutcome::kReplaced || each.outcome == ReplacementOutcome::kExcluded;
    const bool counts =
        is_slow && !is_requested(each) && !each.host.empty() && is_within(job.spec.stragglers, each.at, now);
    if (counts && std::ranges::find(hosts, each.host) == hosts.end()) hosts.push_back(each.host);
  }
  return hosts;
}

int replacements_left(const api::TrainingJob& job, WallTime now) {
  return static_cast<int>(
      std::max<std::int64_t>(job.spec.stragglers.max_replacements - replaced_within(job, now), 0));
}

void note_excluded(const Observed& observed, const api::Fault& fault, Plan& plan) {
  const cluster::Pod* const pod = find_pod(observed, fault.role, fault.index);
  const std::string host = pod != nullptr && !pod->host.empty() ? pod->host : fault.host;
  const std::string successor = pod_name(observed.job, fault.role, fault.index,
                                         newest_number(observed.job, fault.role, fault.index) + 1);
  add_replacement(
      {.at = observed.now,
       .role = fault.role,
       .index = fault.index,
       .pod = fault.pod,
       .host = host,
       .successor = successor,
       .cause = api::StragglerCause::kUnfit,
       .outcome = ReplacementOutcome::kExcluded,
       .ended = observed.now,
       .message = str_cat("pod ", fault.pod, host.empty() ? "" : str_cat(" on ", host),
                          " failed the check before the first step; pod ", successor, " takes its place")},
      plan.status);
}

std::string begin_requested_handover(const Observed& observed, const api::Member& member,
                                     const cluster::Pod& pod, Plan& plan) {
  const std::string successor = begin_handover(observed,
                                               {.role = member.role,
                                                .index = member.index,
                                                .pod = pod.spec.name,
                                                .cause = api::StragglerCause::kRequested},
                                               plan);
  std::string message = str_cat("pod ", successor, " is to take over from pod ", pod.spec.name);
  record_event(observed, false, kMemberReplacing, message, "somebody asked for it", plan);
  return message;
}

void note_preflight(const Observed& observed, Plan& plan) {
  if (!observed.report->preflight) return;
  api::Preflight now = *observed.report->preflight;
  for (api::UnfitMember& each : now.unfit) {
    const auto pod = std::ranges::find(
        observed.pods, each.pod, [](const cluster::Pod& one) -> const std::string& { return one.spec.name; });
    if (pod != observed.pods.end() && !pod->host.empty()) each.host = pod->host;
  }
  std::optional<api::Preflight>& told = plan.status.preflight;
  const auto is_known = [&](const api::Preflight& known) {
    api::Preflight same = known;
    same.at.reset();
    if (now.outcome != api::PreflightOutcome::kFailed) same.message = now.message;
    for (std::size_t i = 0; i < std::min(same.unfit.size(), now.unfit.size()); ++i)
      same.unfit[i].host = now.unfit[i].host;  // its pod may be gone since
    return same == now;
  };
  if (told && is_known(*told)) return;
  if (!now.unfit.empty()) now.message = diagnosis::message_of(now);
  now.at = observed.now;
  const bool passed = now.outcome == api::PreflightOutcome::kPassed;
  record_event(observed, !passed, passed ? kPreflightPassed : kPreflightFailed, now.message,
               "members were checked before the first step", plan);
  told = std::move(now);
}

bool settle_handover(const Observed& whole, Plan& plan) {
  const StragglerReplacement* now = taken_over(whole);
  const bool taken = now != nullptr;
  if (now == nullptr) now = under_way(whole.job.status);
  if (now == nullptr) return false;
  const bool requested = is_requested(*now);
  const char* const kept = requested ? kMemberKept : kStragglerKept;
  const auto end = [&](ReplacementOutcome outcome, bool warning, const char* reason, std::string message) {
    StragglerReplacement& each = plan.status.straggler_replacements[static_cast<std::size_t>(
        now - whole.job.status.straggler_replacements.data())];
    each.outcome = outcome;
    each.ended = whole.now;
    each.message = std::move(message);
    plan.status_reason = each.message;
    record_event(whole, warning, reason, each.message, "the replacement of a member has ended", plan);
    requeue(Duration::zero(), plan);
    return true;
  };
  if (taken) {
    const Incarnation& to = *whole.report->handed_over;
    api::Replacement& place = replacement_of(plan.status.restarts, to.role, to.index);
    const std::int64_t more = to.number - wanted_attempt(whole.job, to.role, to.index);
    place.count += more;
    place.successors -= more;
    place.last = whole.now;
    place.not_before.reset();
    const std::string why =
        requested ? " was replaced by request"
                  : str_cat(" was ", diagnosis::factor_text(now->factor), " as slow as the others");
    return end(ReplacementOutcome::kReplaced, false, requested ? kMemberHandedOver : kStragglerReplaced,
               str_cat("pod ", now->pod, now->host.empty() ? "" : str_cat(" on ", now->host), why,
                       ", and another member has its rank; pod ", now->successor, " has its place"));
  }
  const std::optional<Incarnation> to = handover_of(whole.job);
  if (!to)
    return end(ReplacementOutcome::kOverBefore, false, kReplacementOver, end_without_it(whole.job, *now));
  if (!whole.report || whole.report->attempt != whole.job.status.restarts.attempt) return false;
  const api::StragglerPolicyAction action = whole.job.spec.stragglers.action;
  if (!requested && action != api::StragglerPolicyAction::kReplace)
    return end(ReplacementOutcome::kOverBefore, false, kept,
               str_cat("spec.stragglers.action is ", api::name(action), " now, and pod ", now->pod,
                       " keeps its place"));
  // All wait for a member, which may need the room that the successor has.
  if (whole.report->shortage && !whole.report->successor_phase.empty())
    return end(ReplacementOutcome::kOverBefore, false, kept,
               str_cat("the job waits for other members, and pod ", now->pod, " keeps its place"));
  if (!view_runs(whole)) return false;  // a successor may have the rank already, and come yet
  if (auto over = end_of(whole, *now))
    return end(over->outcome, over->outcome == ReplacementOutcome::kNoSuccessor, kept,
               std::move(over->message));
  requeue(std::max<Duration>(now->at + kHandoverTimeout - whole.now, Duration::zero()), plan);
  return false;
}

void create_successor(const Observed& observed, const Observed& whole, Plan& plan) {
  const std::optional<Incarnation> to = handover_of(observed.job);
  if (!to) return;
  const StragglerReplacement& each = *under_way(observed.job.status);
  const bool there = std::ranges::any_of(
      whole.pods, [&](const cluster::Pod& pod) { return pod.spec.name == each.successor; });
  if (there) return;
  for (const Slot& slot : desired_slots(observed.job)) {
    if (slot.role != to->role || slot.index != to->index) continue;
    cluster::PodSpec spec = pod_spec(observed, slot, to->number);
    spec.avoid_host = each.host;
    spec.shunned_hosts = slow_hosts(observed.job, observed.now);
    plan.actions.push_back(CreatePod{std::move(spec), str_cat("it is to take over from pod ", each.pod)});
  }
}

void act_on_stragglers(const Observed& observed, Plan& plan) {
  note_as_slow(observed, plan);
  Straggler* worst = nullptr;
  for (Straggler& each : plan.status.stragglers) {
    Judgement judgement = judge(observed, plan.status, each);
    each.action = judgement.action;
    each.why = std::move(judgement.why);
    if (judgement.later) requeue(*judgement.later, plan);
    if (judgement.begins && (worst == nullptr || each.lost_ms > worst->lost_ms)) worst = &each;
    if (judgement.begins) each.why = "another one is replaced first";
  }
  if (worst == nullptr) return;
  for (Straggler& each : plan.status.stragglers) {
    if (&each != worst && each.action == StragglerAction::kReplace) each.action = StragglerAction::kWait;
  }
  replace_straggler(observed, *worst, plan);
}

}  // namespace paceline::plan
