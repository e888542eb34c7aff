#include <algorithm>
#include <utility>

#include "controller/coordinator/core_impl.h"
#include "controller/diagnosis/diagnosis.h"

// From what is seen of members to a verdict, and what follows from it (core.h, "Diagnosis").

namespace paceline::coordinator {

using diagnosis::Evidence;
using Seen = api::ObservationKind;

LossDecision fail_on_loss(const api::Fault& verdict, int) {
  return {LossAction::kFailJob,
          str_cat(role_name(verdict.role), "-", verdict.index, " is lost and lost members are not replaced")};
}

void CoordinatorCore::Impl::lose(Slot& slot, api::Observation seen, TimePoint since, bool soft) {
  if (slot.successor) return drop_successor(seen.detail);
  if (slot.evidence && !slot.evidence->soft) return;  // what was seen first stays
  slot.evidence = Evidence{number(slot), std::move(seen), since, soft};
}

void CoordinatorCore::Impl::on_peer_fault(Slot& slot, const v1::PeerFault& fault) {
  const auto peer = std::find_if(slots().begin(), slots().end(), [&](const Slot& s) {
    return s.hello && s.hello->member_id() == fault.peer_member_id();
  });
  const auto ignored = [&](const char* why) {
    log(str_cat("a fault report of ", slot.name(), " is ignored: ", why));
  };
  // A member that reports trains no more in the earlier coordinator's view that it holds.
  if (gathers_earlier_view() && fault.generation() == slot.hello->held_generation())
    slot.held = Slot::Held::kWaits;
  if (state_ != JobState::kRunning) return ignored("no view is running");
  if (fault.generation() != generation_.value) return ignored("it is about another generation");
  if (peer == slots().end() || &*peer == &slot) return ignored("it names no other member");
  if (slot.observes() || peer->observes()) return ignored("observers have no links");
  if (peer->lost) return ignored("the others go on without that member");
  if (peer->left && !peer->evidence) return ignored("that member has finished");
  const std::string reason = cut(fault.reason(), kMaxNameBytes);
  if (!suspicions_.report(slot, *peer, reason))
    return ignored(slot.role == Role::kServer ? "it has reported that one already"
                                              : "it has reported one already");
  log(str_cat(slot.name(), " lost its link to ", peer->name(), " at step ", fault.step(), ": ", reason));
}

// Silence is only evidence where the core was there to listen: after a pause of its own process (a stopped
// terminal, a swapped out machine) everybody is heard anew, and has as much time left as before.
void CoordinatorCore::Impl::forgive_own_absence() {
  if (now_ - last_now_ > longest_absence() && places_.someone_attached()) {
    form_since_ += now_ - last_now_;
    watch_.pause(now_ - last_now_);
    suspicions_.was_away(now_);
    gathers_since_ += now_ - last_now_;
    for (Slot& slot : slots()) {
      slot.last_heard = std::max(slot.last_heard, now_);
      if (slot.saves_since) slot.saves_since = now_;
      if (slot.evidence && slot.evidence->lapsed)
        slot.evidence->since = now_;  // it may have come back unheard
    }
    log(str_cat("the coordinator was away for ", format_duration(now_ - last_now_)));
  }
  last_now_ = now_;
}

void CoordinatorCore::Impl::lose(const std::vector<Sighting>& sightings) {
  for (const Sighting& each : sightings)
    lose(slots()[static_cast<std::size_t>(each.slot)], each.seen, each.since);
}

void CoordinatorCore::Impl::find_silent() {
  lose(watch_.silent(now_, state_ == JobState::kForming));
  if (state_ == JobState::kDraining) lose(watch_.late(now_, generation_));
  const bool misses = state_ == JobState::kForming && !(ring_ && generation_.value > 0);
  if (misses) lose(watch_.missing(now_, form_since_));
}

// Time alone changes nothing but by the above, by carry_out() and by settle_end().
TimePoint CoordinatorCore::Impl::due() const {
  if (is_final(state_)) return TimePoint::max();
  if (suspicions_.open()) return last_now_;
  TimePoint due = TimePoint::max();
  // Often enough that its own absence shows, and so that nobody's silence lasts unseen.
  if (places_.someone_attached()) due = last_now_ + longest_absence() / 2;
  for (const Slot& slot : members()) {
    if (slot.attached()) due = std::min(due, slot.last_heard + config_.heartbeat_timeout);
    if (slot.evidence) return last_now_;
  }
  const auto at = [&](TimePoint then) {
    if (then > last_now_) due = std::min(due, then);
  };
  if (state_ == JobState::kForming) {
    at(form_since_ + config_.form_timeout);
    at(form_since_ + config_.start_timeout);
    at(gathers_since_ + config_.rejoin_grace);
    at(preflight_.due());
  }
  for (const Slot& slot : members()) {
    if (state_ == JobState::kDraining) at(watch_.drained_by(slot));
  }
  if (stopping_ || finish_by_) due = std::min(due, end_due());
  return due;
}

void CoordinatorCore::Impl::decide() {
  find_silent();
  const auto next_view = [&](const api::Fault& verdict) {
    return decide_on(verdict).action == LossAction::kFormNextView;
  };
  std::optional<api::Fault> verdict = suspicions_.ripe(now_, state_ == JobState::kForming, next_view);
  if (verdict) carry_out(*std::move(verdict));
}

// With servers ranks are places, also in the view of an earlier coordinator, in which they train on unless
// they wait for another.
LossDecision CoordinatorCore::Impl::decide_on(const api::Fault& verdict) {
  const Slot& missed = *places_.slot_of(static_cast<int>(verdict.role), verdict.index);
  const bool same_weights =
      verdict.kind == api::FaultKind::kDiverged || verdict.kind == api::FaultKind::kNotFinite;
  if (ring_ && missed.surplus && !same_weights)
    return {LossAction::kFormNextView, str_cat(missed.name(), " is gone, as it was to be")};
  const bool earlier =
      gathers_earlier_view() && config_.trained_before && verdict.kind != api::FaultKind::kUnreachable;
  api::Fault in_view = verdict;
  if (earlier) in_view.rank = number(missed);
  LossDecision decision =
      config_.on_member_lost(in_view, places_.trainers_left() - (missed.counts() ? 1 : 0));
  if (decision.action == LossAction::kGoOn && state_ != JobState::kRunning && !earlier)
    return {LossAction::kFailJob, "no view is running that could go on"};
  if (decision.action == LossAction::kFormNextView && !ring_)
    return {LossAction::kFailJob, "what the servers held is lost with the view"};
  return decision;
}

void CoordinatorCore::Impl::carry_out(api::Fault verdict) {
  Slot& missed = *places_.slot_of(static_cast<int>(verdict.role), verdict.index);
  const LossDecision decision = decide_on(verdict);
  if (decision.action != LossAction::kFailJob) {
    log(diagnosis::message_of(verdict));
    log(decision.reason);
    return decision.action == LossAction::kGoOn ? go_on_without(missed, std::move(verdict))
                                                : leave_behind(missed, std::move(verdict));
  }
  verdict_ = std::move(verdict);
  effects_.verdict = verdict_;
  verdict_at_ = now_;
  effects_.report_changed = true;
  const std::string message = diagnosis::message_of(*verdict_);
  log(message);
  log(decision.reason);
  end(JobState::kFailed, message, false);
}

// The next view is formed of those that are left, in the midst of whatever they do: it ends what they wait
// for.
void CoordinatorCore::Impl::leave_behind(Slot& slot, api::Fault verdict) {
  verdict.victims.clear();
  verdict.more_victims = 0;
  if (slot.attached()) fence(slot.stream, diagnosis::message_of(verdict));
  const bool in_view = slot.rank >= 0, surplus = slot.surplus;
  if (in_view) {
    const TimePoint since = slot.evidence ? slot.evidence->since : suspicions_.since().value_or(now_);
    view_changes_.member_lost(diagnosis::message_of(verdict), now_ - since);
  }
  slot.incarnation = std::max(slot.incarnation, slot.hello ? slot.hello->incarnation() : 0) + 1;
  slot.vacate();
  slot.lost = true;
  slot.surplus = surplus;
  suspicions_.leave_behind(in_view);
  if (in_view && state_ != JobState::kForming) {
    state_ = JobState::kForming;
    form_since_ = now_;
    reason_ = str_cat(slot.name(), " is lost; the next view is formed without it");
  }
  if (surplus) return;  // it was to go
  note_lost(slot, std::move(verdict));
  // The planner hears of a loss, and counts it; the pod that it makes then has the place, and a later number.
  if (places_.successor() == nullptr || &places_.predecessor() != &slot) return;
  slot.incarnation = std::max(slot.incarnation, places_.successor()->incarnation + 1);
  on(Handover{});
}

void CoordinatorCore::Impl::note_lost(Slot& slot, api::Fault verdict) {
  std::erase_if(lost_, [&](const Lost& each) {
    return each.fault.role == slot.role && each.fault.index == slot.index;
  });
  lost_.push_back({verdict, now_});
  effects_.lost.push_back(std::move(verdict));
  effects_.report_changed = true;
}

void CoordinatorCore::Impl::go_on_without(Slot& slot, api::Fault verdict) {
  if (slot.attached()) evict(slot.stream, diagnosis::message_of(verdict), false, true);
  slot.stream = {};
  slot.lost = slot.drained = true;
  slot.evidence.reset();
  suspicions_.go_on_without(slot);
  reason_ = generation_.value > 0 ? str_cat("view ", generation_.value, " goes on without ", slot.name())
                                  : str_cat("gathering an earlier view's members without ", slot.name());
  note_lost(slot, std::move(verdict));
}

}  // namespace paceline::coordinator
