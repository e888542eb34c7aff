#include <algorithm>
#include <set>
#include <utility>

#include "controller/coordinator/core_impl.h"

// From what is seen of members to a verdict, and what follows from it (core.h, "Blame").

namespace paceline::coordinator {

LossDecision fail_on_loss(const Verdict& verdict, int) {
  return {LossAction::kFailJob,
          str_cat(role_name(verdict.role), "-", verdict.index, " is lost and lost members are not replaced")};
}

void CoordinatorCore::Impl::lose(Slot& slot, FaultKind kind, TimePoint since, std::string text,
                                 bool accusing) {
  if (slot.evidence && !slot.evidence->accusing) return;  // what was seen first stays
  slot.evidence = Evidence{number(slot), kind, since, std::move(text), accusing};
}

void CoordinatorCore::Impl::on_peer_fault(Slot& slot, const v1::PeerFault& fault) {
  const auto accused = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& s) {
    return s.hello && s.hello->member_id() == fault.peer_member_id();
  });
  const auto ignored = [&](const char* why) {
    say(str_cat("a fault report of ", slot.name(), " is ignored: ", why));
  };
  if (state_ != JobState::kRunning) return ignored("no view is running");
  if (fault.generation() != generation_.value) return ignored("it is about another generation");
  if (accused == slots_.end() || &*accused == &slot) return ignored("it names no other member");
  if (slot.observes() || accused->observes()) return ignored("observers have no links");
  if (accused->lost) return ignored("the others go on without that member");
  if (accused->left && !accused->evidence) return ignored("that member has finished");
  // Who trains stops at the first; a server goes on without those it has lost, who may be all: were one of
  // its reports left out, it would seem to reach that one still.
  const bool serves = slot.role == Role::kServer;
  const auto of_it = [&](const Accusation& a) { return a.accuser == number(slot); };
  const auto same = [&](const Accusation& a) { return of_it(a) && a.accused == number(*accused); };
  if (serves && std::any_of(accusations_.begin(), accusations_.end(), same))
    return ignored("it has reported that one already");
  if (!serves && std::any_of(accusations_.begin(), accusations_.end(), of_it))
    return ignored("it has reported one already");
  accusations_.push_back({number(slot), number(*accused), cut(fault.reason(), kMaxNameBytes)});
  say(str_cat(slot.name(), " lost its link to ", accused->name(), " at step ", fault.step(), ": ",
              accusations_.back().reason));
}

bool CoordinatorCore::Impl::someone_attached() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.attached(); });
}

int CoordinatorCore::Impl::trainers_left() const {
  return static_cast<int>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.trains() && !s.lost; }));
}

// Silence is only evidence where the core was there to listen: after a pause of its own process (a stopped
// terminal, a swapped out machine) everybody is heard anew.
void CoordinatorCore::Impl::forgive_own_absence() {
  if (now_ - last_now_ > longest_absence() && someone_attached()) {
    for (Slot& slot : slots_) {
      slot.last_heard = std::max(slot.last_heard, now_);
      if (slot.evidence && slot.evidence->lapsed)
        slot.evidence->since = now_;  // it may have come back unheard
    }
    say(str_cat("the coordinator was away for ", format_duration(now_ - last_now_)));
  }
  last_now_ = now_;
}

Duration CoordinatorCore::Impl::patience_with(const Slot& slot) const {
  if (state_ == JobState::kForming || !slot.gaps.tells()) return config_.most_silence;
  std::vector<Duration> largest;
  for (const Slot& other : members()) {
    if (other.attached() && &other != &slot)
      largest.push_back(std::max(other.gaps.largest(), now_ - other.last_heard));
  }
  if (largest.empty()) largest.push_back(slot.gaps.largest());
  return silence_limit(config_.heartbeat_timeout, config_.most_silence, std::move(largest));
}

void CoordinatorCore::Impl::find_frozen() {
  for (Slot& slot : members()) {
    if (!slot.attached() || now_ - slot.last_heard <= config_.heartbeat_timeout) continue;
    const Duration patience = patience_with(slot);
    if (now_ - slot.last_heard <= patience) continue;
    lose(slot, FaultKind::kFrozen, slot.last_heard, str_cat("no heartbeat for ", format_duration(patience)));
  }
  if (state_ != JobState::kDraining || now_ - drain_since_ <= config_.stop_timeout) return;
  for (Slot& slot : members()) {
    if (slot.attached() && slot.rank >= 0 && !slot.drained) {
      lose(slot, FaultKind::kFrozen, now_,
           str_cat("it did not end view ", generation_.value, " when told to"));
    }
  }
}

// Time alone changes nothing but by the above, by carry_out() and by settle_end().
TimePoint CoordinatorCore::Impl::due() const {
  if (is_final(state_)) return TimePoint::max();
  if (suspicious_since_) return last_now_;
  TimePoint due = TimePoint::max();
  // Often enough that its own absence shows, and so that nobody's silence lasts unseen.
  if (someone_attached()) due = last_now_ + longest_absence() / 2;
  for (const Slot& slot : members()) {
    if (slot.attached()) due = std::min(due, slot.last_heard + config_.heartbeat_timeout);
    if (slot.evidence) return last_now_;
  }
  if (state_ == JobState::kForming) due = std::min(due, form_since_ + config_.form_timeout);
  if (state_ == JobState::kDraining) due = std::min(due, drain_since_ + config_.stop_timeout);
  if (stopping_ || finish_by_) due = std::min(due, end_due());
  return due;
}

void CoordinatorCore::Impl::find_missing() {
  if (state_ != JobState::kForming || now_ - form_since_ < config_.form_timeout) return;
  std::string names;
  for (const Slot& slot : members()) {
    if (!slot.attached() && !slot.gone()) names += str_cat(names.empty() ? "" : ", ", slot.name());
  }
  for (Slot& slot : members()) {
    if (slot.attached() || slot.gone()) continue;
    lose(slot, FaultKind::kMissing, form_since_,
         str_cat("did not attach within ", format_duration(config_.form_timeout), "; missing: ", names));
  }
}

std::vector<Evidence> CoordinatorCore::Impl::all_evidence() const {
  std::vector<Evidence> all;
  for (const Slot& slot : members()) {
    if (slot.evidence) {
      all.push_back(*slot.evidence);
    } else if (std::find(diverged_.begin(), diverged_.end(), slot.rank) != diverged_.end()) {
      all.push_back({number(slot), FaultKind::kDiverged, diverged_since_, diverged_text_, false});
    }
  }
  return all;
}

Surroundings CoordinatorCore::Impl::surroundings() const {
  Surroundings around;
  std::set<int> accusers;
  for (const Accusation& a : accusations_) accusers.insert(a.accuser);
  for (const Slot& slot : members()) {
    const bool trains = slot.trains() && slot.attached();
    around.places.push_back({slot.role == Role::kServer, trains});
    // A heartbeat tells of steps before it.
    around.servers_work |= trains && suspicious_since_ && !accusers.contains(number(slot)) &&
                           slot.stepped_at > *suspicious_since_ + config_.grace;
  }
  return around;
}

void CoordinatorCore::Impl::decide() {
  find_frozen();
  find_missing();
  const std::vector<Evidence> evidence = all_evidence();
  if (evidence.empty() && accusations_.empty()) {
    suspicious_since_.reset();
    return;
  }
  if (!suspicious_since_) suspicious_since_ = now_;
  const Duration waited = now_ - *suspicious_since_;
  if (!has_hard(evidence) && waited < config_.grace) return;  // reports come many at once
  const Judgement judgement = *judge(evidence, accusations_, surroundings());
  // Who is frozen or missing was so for long: no better evidence can be under way.
  const bool ripe = judgement.kind == FaultKind::kFrozen || judgement.kind == FaultKind::kMissing;
  if (!ripe && waited < config_.grace) return;
  if (waited < config_.save_timeout && expects_the_asked(evidence)) return;
  if (may_come_back(slots_[static_cast<std::size_t>(judgement.culprit)])) return;
  if (!judgement.sure && waited < config_.report_window) return;
  if (!has_hard(evidence)) {
    const auto quiet = [&](const Slot& s) {
      return s.attached() && 2 * (now_ - s.last_heard) > 5 * config_.heartbeat_interval &&
             waited < config_.grace + patience_with(s);
    };
    if (std::any_of(members().begin(), members().end(), quiet))
      return;  // it may be the frozen one that the reports are about
  }
  carry_out(make_verdict(judgement));
}

// Those who left follow another that was asked to stop. That one is still here, and will say so: rank 0 once
// it has saved.
bool CoordinatorCore::Impl::expects_the_asked(std::span<const Evidence> evidence) const {
  return accusations_.empty() && all_follow(evidence) &&
         std::any_of(members().begin(), members().end(),
                     [](const Slot& s) { return s.trains() && s.attached() && !s.evidence; });
}

// The cluster has not said that its process ended, and no peer has lost it.
bool CoordinatorCore::Impl::may_come_back(const Slot& slot) const {
  if (!slot.evidence || !slot.evidence->lapsed || now_ - slot.evidence->since >= config_.rejoin_grace)
    return false;
  return std::none_of(accusations_.begin(), accusations_.end(),
                      [&](const Accusation& a) { return a.accused == number(slot); });
}

Verdict CoordinatorCore::Impl::make_verdict(const Judgement& judgement) const {
  const Slot& slot = slots_[static_cast<std::size_t>(judgement.culprit)];
  Verdict verdict;
  verdict.kind = judgement.kind;
  verdict.role = slot.role;
  verdict.index = slot.index;
  verdict.rank = slot.rank;
  if (slot.hello) {
    verdict.member_id = slot.hello->member_id();
    verdict.pod = slot.hello->pod();
    verdict.host = slot.hello->host();
    verdict.pid = slot.hello->pid();
  }
  verdict.generation = generation_;
  verdict.step = slot.trains() ? slot.step : slots_.front().step;  // servers count no steps: rank 0's
  verdict.exit_code = slot.exit_code;
  verdict.signal = slot.signal;
  verdict.evidence = judgement.text;
  for (const int victim : judgement.victims) {
    const Slot& other = slots_[static_cast<std::size_t>(victim)];
    std::string what = other.evidence ? other.evidence->text : "reported a lost link";
    for (const Accusation& a : accusations_) {
      if (a.accuser != victim) continue;
      what = str_cat("lost its link to ", slots_[static_cast<std::size_t>(a.accused)].name());
      if (a.accused == judgement.culprit) break;
    }
    verdict.victims.push_back(str_cat(other.name(), ": ", what));
  }
  verdict.message = verdict_message(verdict);
  return verdict;
}

void CoordinatorCore::Impl::carry_out(Verdict verdict) {
  Slot& culprit = *slot_of(static_cast<int>(verdict.role), verdict.index);
  // They train on in the view of an earlier coordinator, where ranks are slots; unless they wait for another.
  const bool earlier =
      gathers_earlier_view() && config_.trained_before && verdict.kind != FaultKind::kUnreachable;
  Verdict in_view = verdict;
  if (earlier) in_view.rank = number(culprit);
  LossDecision decision = config_.on_member_lost(in_view, trainers_left() - (culprit.trains() ? 1 : 0));
  if (decision.action == LossAction::kGoOn) {
    if (state_ == JobState::kRunning || earlier) {
      say(verdict.message);
      say(decision.reason);
      return go_on_without(culprit, std::move(verdict));
    }
    decision = {LossAction::kFailJob, "no view is running that could go on"};
  }
  verdict_ = std::move(verdict);
  effects_.verdict = verdict_;
  verdict_at_ = now_;
  effects_.report_changed = true;
  say(verdict_->message);
  say(decision.reason);
  if (decision.action == LossAction::kFailJob) return end(JobState::kFailed, verdict_->message, false);
  for (Slot& slot : members()) {
    const bool blamed = &slot == &culprit;
    if (!blamed && !slot.evidence) continue;
    if (slot.attached()) evict(slot.stream, blamed ? verdict_->message : slot.evidence->text, false, true);
    slot.vacate();
  }
  drain_for_next_view(verdict_->message);
}

// What else was seen is judged by itself: there may be more that are lost. What their peers have reported,
// too, has time to be complete; what was seen of members alone has had it since then: of four workers that
// fail at the same time the last one would be judged after four windows, when the cluster's word of its end,
// without a reason, had long been taken.
void CoordinatorCore::Impl::go_on_without(Slot& slot, Verdict verdict) {
  if (slot.attached()) evict(slot.stream, verdict.message, false, true);
  slot.stream = {};
  slot.lost = slot.drained = true;
  slot.evidence.reset();
  std::erase_if(accusations_,
                [&](const Accusation& a) { return a.accuser == number(slot) || a.accused == number(slot); });
  std::erase(diverged_, slot.rank);
  suspicious_since_.reset();
  if (accusations_.empty()) {
    for (const Evidence& e : all_evidence())
      suspicious_since_ = std::min(suspicious_since_.value_or(e.since), e.since);
  }
  lost_.push_back({verdict.role, verdict.index, verdict.pod, verdict.message});
  reason_ = generation_.value > 0 ? str_cat("view ", generation_.value, " goes on without ", slot.name())
                                  : str_cat("gathering an earlier view's members without ", slot.name());
  effects_.lost = std::move(verdict);
  effects_.report_changed = true;
}

}  // namespace paceline::coordinator
