#include <algorithm>
#include <utility>

#include "base/pluralize.h"
#include "controller/coordinator/core_impl.h"

// The job's states: what each moment allows, the next view, the end of one, the end of all.

namespace paceline::coordinator {

void CoordinatorCore::Impl::settle() {
  if (is_final(state_)) return;
  if (judges()) decide();
  if (is_final(state_)) return;
  settle_end();
  if (state_ == JobState::kDraining && !stopping_ &&
      std::all_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.rank < 0 || s.drained; })) {
    state_ = JobState::kForming;
    form_since_ = now_;
    for (Slot& slot : slots_) slot.rank = -1;
    reason_ = "waiting for members of the next view";
    log(reason_);
  }
  form_if_complete();
}

TimePoint CoordinatorCore::Impl::stop_by() const {
  const bool may_save =
      std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.rank == 0 && s.attached(); });
  return stop_since_ +
         (may_save ? std::max(config_.save_timeout, config_.stop_timeout) : config_.stop_timeout);
}

// Servers and observers don't know when training is over: they are told, once nobody trains any more. A
// server has its last numbers by then, or with its next word: one that is silent is not waited for longer
// than it takes to be called frozen. An observer may have the newest checkpoint yet to evaluate.
void CoordinatorCore::Impl::settle_end() {
  if (!stopping_ && !finish_by_) return;
  if (std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.trains() && s.attached(); })) {
    nobody_since_.reset();
    if (now_ < (stopping_ ? stop_by() : *finish_by_)) return;
  } else {
    if (!nobody_since_) nobody_since_ = now_;
    const bool counts = std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) {
      return s.role == Role::kServer && s.attached() && s.rank >= 0 && !s.served;
    });
    if (counts && now_ < *nobody_since_ + config_.heartbeat_timeout) return;
    if (!stopping_ && observers_look() && now_ < *nobody_since_ + config_.stop_timeout) return;
    const bool observed =
        stopping_ && !another_follows_ &&
        std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.observes() && s.attached(); });
    if (observed && now_ < stop_since_ + config_.stop_timeout) return;  // for their goodbyes
  }
  if (stopping_) return end(JobState::kStopped, str_cat("stopped: ", stop_reason_), false);
  end(JobState::kFinished, "finished", true);
}

// Tells those that have not heard yet that what is saved now is the last; whether one has not said yet that
// it has seen that.
bool CoordinatorCore::Impl::observers_look() {
  bool looks = false;
  for (Slot& slot : slots_) {
    if (!slot.observes() || !slot.attached()) continue;
    if (!std::exchange(slot.told_over, true)) send_drain(slot, "the training is over");
    looks |= !slot.served;
  }
  return looks;
}

// The first moment at which settle_end() may end the job by time alone.
TimePoint CoordinatorCore::Impl::end_due() const {
  if (!nobody_since_) return stopping_ ? stop_by() : *finish_by_;
  TimePoint due = TimePoint::max();
  for (const TimePoint limit : {*nobody_since_ + config_.heartbeat_timeout,
                                *nobody_since_ + config_.stop_timeout, stop_since_ + config_.stop_timeout}) {
    if (limit > last_now_) due = std::min(due, limit);
  }
  return due;
}

std::uint64_t CoordinatorCore::Impl::common_view() const {
  const std::uint64_t held = slots_.front().hello->held_generation();
  const bool all = std::all_of(members().begin(), members().end(),
                               [&](const Slot& s) { return s.gone() || s.hello->held_generation() == held; });
  return all && generation_.value == 0 && held <= kMostCount ? held : 0;
}

void CoordinatorCore::Impl::form_if_complete() {
  if (state_ != JobState::kForming || suspicious_since_) return;
  const auto all = [&](auto condition) {
    return std::all_of(members().begin(), members().end(),
                       [&](const Slot& s) { return s.gone() || condition(s); });
  };
  if (!all([](const Slot& s) { return s.attached(); })) return;
  const std::uint64_t common = common_view();
  const auto all_say = [&](Slot::Held held) { return all([&](const Slot& s) { return s.held == held; }); };
  const auto one_says = [&](Slot::Held held) { return !all([&](const Slot& s) { return s.held != held; }); };
  const bool adopts = common > 0 && all_say(Slot::Held::kTrains);
  // Do they still train in it? Their heartbeats will tell.
  if (common > 0 && !adopts && !one_says(Slot::Held::kWaits)) return;
  if (!adopts && misses_gone()) return;
  std::uint64_t newest = generation_.value;
  std::int64_t first_step = 0;
  for (const Slot& slot : members()) {  // they may know generations of a coordinator before this one
    if (!slot.hello) continue;
    newest = std::max(newest, std::min<std::uint64_t>(slot.hello->held_generation(), kMostCount));
    first_step = std::max({first_step, sane_step(slot.hello->held_step()), slot.step});
  }
  generation_.value = adopts ? common : newest + 1;
  make_view(first_step);
  if (!adopts) {
    for (const Slot& slot : members()) send_view(slot);
  }
  progress_.new_view();
  state_ = JobState::kRunning;
  reason_ = str_cat("view ", generation_.value, " of ", pluralize(members_, "member", "members"));
  log(str_cat(reason_,
              adopts ? " goes on: all are attached again, and train in it" : " is formed: all are attached"));
  effects_.report_changed = true;
}

// Who had finished is not there for another view, which is no failure of its process; nor is who was lost.
bool CoordinatorCore::Impl::misses_gone() {
  bool any = false;
  for (Slot& slot : members()) {
    if (!slot.gone()) continue;
    const char* const what = slot.lost ? "was lost, and" : "has finished, but";
    slot.lost = slot.left = slot.finished = slot.finished_before = false;
    lose(slot, {api::ObservationKind::kOutOfView, str_cat("it ", what, " others wait for another view")},
         now_);
    any = true;
  }
  return any;
}

void CoordinatorCore::Impl::make_view(std::int64_t first_step) {
  view_ = {};
  view_.set_generation(generation_.value);
  view_.set_first_step(first_step);
  ViewRecord record{generation_, {}, first_step};
  const auto trainers = std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.trains(); });
  for (Slot& slot : members()) {
    slot.rank = number(slot);
    slot.drained = slot.gone();
    slot.served = false;
    v1::ViewMember& member = *view_.add_members();
    member.set_role(static_cast<v1::RoleKind>(slot.role));
    member.set_index(static_cast<std::uint32_t>(slot.index));
    if (slot.hello) {
      member.set_member_id(slot.hello->member_id());
      member.set_pod(slot.hello->pod());
      member.set_host_id(slot.hello->host_id());
      *member.mutable_address() = slot.hello->address();
    }
    if (slot.trains()) member.set_share(1.0 / static_cast<double>(trainers));
    record.members.push_back(slot.name());
  }
  effects_.view = std::move(record);
}

void CoordinatorCore::Impl::drain_for_next_view(const std::string& why) {
  suspicious_since_.reset();
  reports_.clear();
  diverged_.clear();
  if (state_ == JobState::kForming) return;
  if (state_ == JobState::kRunning) drain_since_ = now_;
  state_ = JobState::kDraining;
  reason_ = drain_reason_ = str_cat("view ", generation_.value, " ends: ", why);
  log(reason_);
  for (const Slot& slot : slots_) {
    if (slot.attached() && slot.rank >= 0) send_drain(slot, drain_reason_);
  }
}

void CoordinatorCore::Impl::end(JobState state, std::string reason, bool finished) {
  state_ = state;
  reason_ = std::move(reason);
  effects_.report_changed = true;
  log(str_cat("the job is ", job_state_name(state_), ": ", reason_));
  progress_.end(now_);
  for (Slot& slot : slots_) {
    // For the next attempt.
    const bool stays = slot.observes() && (state_ == JobState::kFailed || another_follows_);
    if (!slot.attached() || stays) continue;
    evict(slot.stream, reason_, finished, true);
    slot.stream = {};
    slot.left |= finished;  // servers and observers say no goodbye: this is theirs
  }
}

void CoordinatorCore::Impl::send_view(const Slot& to) {
  v1::CoordinatorMessage message;
  *message.mutable_view() = view_;
  effects_.send.push_back({to.stream, std::move(message)});
}

void CoordinatorCore::Impl::send_drain(const Slot& to, const std::string& reason) {
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_generation(std::max<std::uint64_t>(1, generation_.value));
  message.mutable_drain()->set_reason(reason);
  effects_.send.push_back({to.stream, std::move(message)});
}

}  // namespace paceline::coordinator
