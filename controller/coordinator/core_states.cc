#include <algorithm>
#include <utility>

#include "controller/coordinator/core_impl.h"

// The job's states: what each moment allows, the next view, the end of one, the end of all.

namespace paceline::coordinator {

void CoordinatorCore::Impl::settle() {
  if (is_final(state_)) return;
  if (blames()) decide();
  if (is_final(state_)) return;
  settle_end();
  if (state_ == JobState::kDraining && !stopping_ &&
      std::all_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.rank < 0 || s.drained; })) {
    state_ = JobState::kForming;
    form_since_ = now_;
    for (Slot& slot : slots_) slot.rank = -1;
    reason_ = "waiting for members of the next view";
    say(reason_);
  }
  form_if_complete();
}

TimePoint CoordinatorCore::Impl::stop_by() const {
  const bool may_save =
      std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.rank == 0 && s.attached(); });
  return stop_since_ +
         (may_save ? std::max(config_.save_timeout, config_.stop_timeout) : config_.stop_timeout);
}

void CoordinatorCore::Impl::settle_end() {
  // Servers and observers don't know when training is over: they are told, once nobody trains any more.
  const bool someone =
      std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.trains() && s.attached(); });
  const bool observed = !another_follows_ && std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) {
    return s.observes() && s.attached();
  });
  const bool in_time = now_ < stop_since_ + config_.stop_timeout;  // for observers' goodbyes
  if (stopping_ && ((!someone && !(observed && in_time)) || now_ >= stop_by()))
    return end(JobState::kStopped, str_cat("stopped: ", stop_reason_), false);
  if (!stopping_ && finish_by_ && (!someone || now_ >= *finish_by_))
    end(JobState::kFinished, "finished", true);
}

std::uint64_t CoordinatorCore::Impl::common_view() const {
  const std::uint64_t held = slots_.front().hello->held_generation();
  const bool all = std::all_of(members().begin(), members().end(),
                               [&](const Slot& s) { return s.gone() || s.hello->held_generation() == held; });
  return all && generation_.value == 0 && held <= kMaxCount ? held : 0;
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
  if (!adopts && !lost_.empty())
    return end(JobState::kFailed,
               str_cat("the view that went on without a member has ended: ", lost_[0].message), false);
  if (!adopts && misses_finished()) return;
  std::uint64_t newest = generation_.value;
  std::int64_t first_step = 0;
  for (const Slot& slot : members()) {  // they may know generations of a coordinator before this one
    if (!slot.hello) continue;
    newest = std::max(newest, std::min<std::uint64_t>(slot.hello->held_generation(), kMaxCount));
    first_step = std::max({first_step, sane_step(slot.hello->held_step()), slot.step});
  }
  generation_.value = adopts ? common : newest + 1;
  make_view(first_step);
  if (!adopts) {
    for (const Slot& slot : members()) send_view(slot);
  }
  progress_.new_view();
  state_ = JobState::kRunning;
  reason_ = str_cat("view ", generation_.value, " of ", members_, " members");
  say(str_cat(reason_,
              adopts ? " goes on: all are attached again, and train in it" : " is formed: all are attached"));
  effects_.report_changed = true;
}

// Who had finished is not there for another view.
bool CoordinatorCore::Impl::misses_finished() {
  bool any = false;
  for (Slot& slot : members()) {
    if (!std::exchange(slot.finished_before, false)) continue;
    slot.left = slot.finished = false;
    lose(slot, FaultKind::kDead, now_, "it has finished, but others wait for another view");
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
  accusations_.clear();
  diverged_.clear();
  if (state_ == JobState::kForming) return;
  if (state_ == JobState::kRunning) drain_since_ = now_;
  state_ = JobState::kDraining;
  reason_ = drain_reason_ = str_cat("view ", generation_.value, " ends: ", why);
  say(reason_);
  for (const Slot& slot : slots_) {
    if (slot.attached() && slot.rank >= 0) send_drain(slot);
  }
}

void CoordinatorCore::Impl::end(JobState state, std::string reason, bool finished) {
  state_ = state;
  reason_ = std::move(reason);
  effects_.report_changed = true;
  say(str_cat("the job is ", job_state_name(state_), ": ", reason_));
  progress_.end(now_);
  for (Slot& slot : slots_) {
    // For the next attempt.
    const bool stays = slot.observes() && (state_ == JobState::kFailed || another_follows_);
    if (!slot.attached() || stays) continue;
    evict(slot.stream, reason_, finished, true);
    slot.stream = {};
  }
}

void CoordinatorCore::Impl::send_view(const Slot& to) {
  v1::CoordinatorMessage message;
  *message.mutable_view() = view_;
  effects_.send.push_back({to.stream, std::move(message)});
}

void CoordinatorCore::Impl::send_drain(const Slot& to) {
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_generation(generation_.value);
  message.mutable_drain()->set_reason(drain_reason_);
  effects_.send.push_back({to.stream, std::move(message)});
}

}  // namespace paceline::coordinator
