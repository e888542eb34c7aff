#include "controller/coordinator/core_suspicions.h"

#include <algorithm>
#include <set>
#include <utility>

#include "controller/coordinator/core_hello.h"
#include "controller/diagnosis/diagnosis.h"
#include "controller/diagnosis/fault_text.h"

namespace paceline::coordinator {

using diagnosis::Evidence;
using diagnosis::PeerReport;
using diagnosis::RootCause;
using diagnosis::Surroundings;
using Seen = api::ObservationKind;

bool Suspicions::report(const Slot& reporter, const Slot& peer, std::string reason) {
  const bool serves = reporter.role == Role::kServer;
  const int by = places_.number(reporter), about = places_.number(peer);
  const auto known = [&](const PeerReport& r) { return r.reporter == by && (!serves || r.peer == about); };
  if (std::ranges::any_of(reports_, known)) return false;
  reports_.push_back({by, about, std::move(reason)});
  return true;
}

void Suspicions::differ(std::vector<int> ranks, std::string from, TimePoint now) {
  if (diverged_.empty()) diverged_since_ = now;
  diverged_ = std::move(ranks);
  diverged_from_ = std::move(from);
}

void Suspicions::forget(const Slot& slot) {
  const int number = places_.number(slot);
  std::erase_if(reports_, [&](const PeerReport& r) { return r.reporter == number || r.peer == number; });
}

void Suspicions::view_is_over() {
  reports_.clear();
  diverged_.clear();
}

void Suspicions::clear() {
  view_is_over();
  since_.reset();
}

// The window begins with what was seen first, whenever that was noticed.
void Suspicions::reopen() {
  for (const Evidence& e : all_evidence()) since_ = std::min(since_.value_or(e.since), e.since);
}

// Members of a view wait on for a word about one of them where the lost one was in no view.
void Suspicions::leave_behind(bool in_view) {
  if (in_view) view_is_over();
  if (reports_.empty()) since_.reset();
  reopen();
}

// There may be more that are lost, and all else that was seen is judged by itself. Of four workers that fail
// at the same time the last one would be judged after four windows, when the cluster's word of its end,
// without a reason, had long been taken.
void Suspicions::go_on_without(const Slot& slot) {
  forget(slot);
  std::erase(diverged_, slot.rank);
  since_.reset();
  if (reports_.empty()) reopen();
}

bool Suspicions::has_report_by(const Slot& reporter) const {
  return std::ranges::find(reports_, places_.number(reporter), &PeerReport::reporter) != reports_.end();
}

std::vector<Evidence> Suspicions::all_evidence() const {
  std::vector<Evidence> all;
  for (const Slot& slot : places_.members()) {
    if (slot.evidence) {
      all.push_back(*slot.evidence);
    } else if (std::find(diverged_.begin(), diverged_.end(), slot.rank) != diverged_.end()) {
      all.push_back({places_.number(slot), {Seen::kDiverged, diverged_from_}, diverged_since_});
    }
  }
  return all;
}

Surroundings Suspicions::surroundings() const {
  const bool ring = !config_.training.has_parameter_server();
  Surroundings around;
  std::set<int> reporters;
  for (const PeerReport& r : reports_) reporters.insert(r.reporter);
  for (const Slot& slot : places_.members()) {
    const bool trains = slot.trains() && slot.attached();
    const bool fresh = ring && trains && !slot.has_stepped;
    around.places.push_back({slot.role == Role::kServer, trains, fresh});
    // A heartbeat tells of steps before it.
    around.servers_work |= trains && since_ && !reporters.contains(places_.number(slot)) &&
                           slot.stepped_at > *since_ + config_.grace;
  }
  return around;
}

std::optional<api::Fault> Suspicions::ripe(TimePoint now, bool forming,
                                           absl::FunctionRef<bool(const api::Fault&)> next_view) {
  const std::vector<Evidence> evidence = all_evidence();
  if (evidence.empty() && reports_.empty()) {
    since_.reset();
    return std::nullopt;
  }
  if (!since_) since_ = now;
  const Duration waited = now - *since_;
  const bool hard = diagnosis::has_hard(evidence);
  if (!hard && waited < config_.grace) return std::nullopt;  // reports come many at once
  const RootCause root = *find_root_cause(evidence, reports_, surroundings());
  const api::FaultKind kind = diagnosis::kind_of(root.seen.kind);
  api::Fault verdict = verdict_on(root);
  // A member that is frozen, hung or missing was so for long: no better evidence can be under way. Where the
  // next view is formed without all that are gone, it is of no weight which of them went first.
  const bool final = kind == api::FaultKind::kFrozen || kind == api::FaultKind::kHung ||
                     kind == api::FaultKind::kMissing || (hard && next_view(verdict));
  if (!final && waited < config_.grace) return std::nullopt;
  if (waited < config_.save_timeout && expects_the_asked(evidence)) return std::nullopt;
  if (may_come_back(slot_at(root.slot), now)) return std::nullopt;
  if (!root.sure && waited < config_.report_window) return std::nullopt;
  if (!hard && awaits_the_quiet(now, waited, forming)) return std::nullopt;
  return verdict;
}

// The members that left follow another that was asked to stop. That one is still here, and will say so: rank
// 0 once it has saved.
bool Suspicions::expects_the_asked(std::span<const Evidence> evidence) const {
  return reports_.empty() && diagnosis::all_follow(evidence) &&
         std::ranges::any_of(places_.members(),
                             [](const Slot& s) { return s.trains() && s.attached() && !s.evidence; });
}

// The cluster has not said that its process ended, and no peer has lost it. Where nobody else holds a state,
// others would begin anew without it: it may have finished, and the cluster's word of that be late.
bool Suspicions::may_come_back(const Slot& slot, TimePoint now) const {
  const bool ring = !config_.training.has_parameter_server();
  const bool others_hold =
      std::ranges::any_of(places_.members(), [](const Slot& s) { return s.attached() && s.may_hold(); });
  const bool alone = ring && slot.may_hold() && !others_hold && config_.rejoin_grace > Duration::zero();
  Duration grace = alone ? std::max(config_.rejoin_grace, config_.start_timeout) : config_.rejoin_grace;
  if (returned_ && slot.evidence && slot.evidence->since <= *returned_ + kReturnGrace)
    grace = std::max(grace, kReturnGrace);
  // An earlier coordinator may have given its place to another one, which comes and says so.
  const bool handed_over = places_.is_to_hand_over(slot) && !slot.hello;
  if (!slot.evidence || now - slot.evidence->since >= grace) return false;
  if (!slot.evidence->lapsed && !handed_over) return false;
  return std::ranges::find(reports_, places_.number(slot), &PeerReport::peer) == reports_.end();
}

// A member that was not heard of late may be the frozen one that the reports are about.
bool Suspicions::awaits_the_quiet(TimePoint now, Duration waited, bool forming) const {
  return std::ranges::any_of(places_.members(), [&](const Slot& s) {
    return s.attached() && 2 * (now - s.last_heard) > 5 * config_.heartbeat_interval &&
           waited < config_.grace + watch_.patience_with(s, now, forming);
  });
}

api::Fault Suspicions::verdict_on(const RootCause& root) const {
  const Slot& slot = slot_at(root.slot);
  api::Fault verdict{.kind = diagnosis::kind_of(root.seen.kind),
                     .role = slot.role,
                     .index = slot.index,
                     .rank = slot.rank,
                     .exit_code = slot.exit_code,
                     .signal = slot.signal,
                     .evidence = {root.seen}};
  verdict.pod = slot.last_pod;
  if (slot.hello) {
    verdict.pod = slot.hello->pod();
    verdict.host = slot.hello->host();
    verdict.pid = slot.hello->pid();
  }
  const Slot* const leader = places_.leader();
  // Servers count no steps: rank 0's.
  if (slot.rank >= 0) verdict.step = slot.trains() || leader == nullptr ? slot.step : leader->step;
  for (const int each : root.victims) {
    if (verdict.victims.size() == api::kMostVictims) {
      ++verdict.more_victims;
    } else {
      verdict.victims.push_back(victim_of(root, slot_at(each)));
    }
  }
  return diagnosis::diagnose({}, std::move(verdict));
}

// Its report of the root cause, or else of another peer, says more than how it ended then.
api::Victim Suspicions::victim_of(const RootCause& root, const Slot& slot) const {
  api::Victim victim{
      .role = slot.role, .index = slot.index, .exit_code = slot.exit_code, .signal = slot.signal};
  for (const Evidence& e : all_evidence()) {
    if (e.slot == places_.number(slot)) victim.seen = e.seen;
  }
  for (const PeerReport& r : reports_) {
    if (r.reporter != places_.number(slot)) continue;
    victim.seen = {Seen::kLostLink, slot_at(r.peer).name()};
    if (r.peer == root.slot) break;
  }
  const bool tells = api::is_own_word(root.seen.kind) || root.seen.kind == Seen::kNotJoined;
  victim.same = tells && victim.seen == root.seen;
  victim.seen.detail = victim.same ? "" : cut(victim.seen.detail, kMaxNameBytes);
  return victim;
}

}  // namespace paceline::coordinator
