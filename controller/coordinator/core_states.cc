#include <algorithm>
#include <utility>

#include "base/pluralize.h"
#include "controller/coordinator/core_impl.h"
#include "controller/diagnosis/preflight_text.h"

// The job's states: what each moment allows, the next view, the end of one, the end of all.

namespace paceline::coordinator {

namespace {
constexpr std::size_t kMostSources = 16;  // of a newcomer's state
}  // namespace

void CoordinatorCore::Impl::settle() {
  if (is_final(state_)) return;
  if (judges()) decide();
  if (is_final(state_)) return;
  settle_end();
  if (state_ == JobState::kDraining && !stopping_ &&
      std::all_of(slots().begin(), slots().end(), [](const Slot& s) { return s.rank < 0 || s.drained; })) {
    state_ = JobState::kForming;
    form_since_ = now_;
    if (!ring_) {
      for (Slot& slot : slots()) slot.rank = -1;
    }
    reason_ = "waiting for members of the next view";
    log(reason_);
  }
  form_if_complete();
  take_in_joiners();
  level_shares();
}

TimePoint CoordinatorCore::Impl::stop_by() const {
  const bool may_save = std::any_of(slots().begin(), slots().end(), [this](const Slot& s) {
    return s.attached() && (s.rank == 0 || s.stream == saver_);
  });
  return stop_since_ +
         (may_save ? std::max(config_.save_timeout, config_.stop_timeout) : config_.stop_timeout);
}

// Servers and observers don't know when training is over: they are told, once nobody trains any more. A
// server has its last numbers by then, or with its next word: one that is silent is not waited for longer
// than it takes to be called frozen. An observer may have the newest checkpoint yet to evaluate.
void CoordinatorCore::Impl::settle_end() {
  if (!stopping_ && !finish_by_) return;
  const auto is_waited_for = [this](const Slot& s) {  // not who waits for a view that does not come
    return s.trains() && s.attached() && (!ring_ || stopping_ || s.rank >= 0);
  };
  if (std::ranges::any_of(slots(), is_waited_for)) {
    nobody_since_.reset();
    if (now_ < (stopping_ ? stop_by() : *finish_by_)) return;
  } else {
    if (!nobody_since_) nobody_since_ = now_;
    const bool counts = std::any_of(slots().begin(), slots().end(), [](const Slot& s) {
      return s.role == Role::kServer && s.attached() && s.rank >= 0 && !s.served;
    });
    if (counts && now_ < *nobody_since_ + config_.heartbeat_timeout) return;
    if (!stopping_ && observers_look() && now_ < *nobody_since_ + config_.stop_timeout) return;
    const bool observed = stopping_ && !another_follows_ &&
                          std::any_of(slots().begin(), slots().end(),
                                      [](const Slot& s) { return s.observes() && s.attached(); });
    if (observed && now_ < stop_since_ + config_.stop_timeout) return;  // for their goodbyes
  }
  if (stopping_) return end(JobState::kStopped, str_cat("stopped: ", stop_reason_), false);
  end(JobState::kFinished, "finished", true);
}

// Tells those that have not heard yet that what is saved now is the last; whether one has not said yet that
// it has seen that.
bool CoordinatorCore::Impl::observers_look() {
  bool looks = false;
  for (Slot& slot : slots()) {
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

void CoordinatorCore::Impl::form_if_complete() {
  if (state_ != JobState::kForming || suspicions_.open() || !judges()) return;
  if (ring_) return form_ring();
  const auto all = [&](auto condition) {
    return std::all_of(members().begin(), members().end(),
                       [&](const Slot& s) { return s.gone() || condition(s); });
  };
  if (!all([](const Slot& s) { return s.attached(); })) return;
  const std::uint64_t common = generation_.value == 0 ? places_.common_view() : 0;
  const auto all_say = [&](Slot::Held held) { return all([&](const Slot& s) { return s.held == held; }); };
  const auto one_says = [&](Slot::Held held) { return !all([&](const Slot& s) { return s.held != held; }); };
  const bool adopts = common > 0 && all_say(Slot::Held::kTrains);
  // Do they still train in it? Their heartbeats will tell.
  if (common > 0 && !adopts && !one_says(Slot::Held::kWaits)) return;
  if (!adopts && misses_gone()) return;
  std::vector<Slot*> chosen;
  for (Slot& slot : members()) chosen.push_back(&slot);
  form(common, chosen, adopts);
}

// `generation`: of the view that is adopted. Members may know generations of a coordinator before this one.
void CoordinatorCore::Impl::form(std::uint64_t generation, const std::vector<Slot*>& chosen, bool adopts) {
  std::uint64_t newest = std::max(generation_.value, config_.told_generation.value);
  for (const Slot& slot : members()) {
    if (!slot.hello) continue;
    const std::uint64_t known = std::max(slot.hello->held_generation(), slot.hello->known_generation());
    newest = std::max(newest, std::min<std::uint64_t>(known, kMostCount));
  }
  generation_.value = adopts ? generation : newest + 1;
  const std::string before = leader_;
  std::vector<Slot*> left_out;
  for (Slot& slot : members()) {
    const bool trained = slot.rank >= 0 && slot.attached() && !slot.surplus;
    if (trained && std::ranges::find(chosen, &slot) == chosen.end()) left_out.push_back(&slot);
  }
  const bool other_shares = begin_shares(chosen, adopts);
  make_view(chosen, adopts && ring_);
  if (!adopts) {
    for (const Slot* slot : chosen) send_view(*slot);
    for (const Slot* slot : left_out) send_view(*slot);
  }
  for (Slot* slot : left_out) {
    slot->viewed = false;
    slot->holds = true;
    view_changes_.stands_by(slot->name());
  }
  std::vector<ViewChanges::Member> in_view;
  for (const Slot* slot : chosen)
    in_view.push_back({slot->name(), slot->hello ? slot->hello->member_id() : ""});
  view_changes_.formed(generation_, std::move(in_view), progress_.step());
  if (leader() != nullptr && leader()->hello) leader_ = leader()->hello->member_id();
  progress_.new_view(!before.empty() && leader_ != before);
  state_ = JobState::kRunning;
  send_save();
  const std::span<const std::int64_t> samples = shares_.samples();
  stragglers_.begin_view(slots(), shares_.even() ? samples.first(0) : samples, other_shares);
  drop_surplus();
  const std::size_t places = members().size() - (places_.successor() == nullptr ? 0 : 1);
  const bool all = chosen.size() == places;
  reason_ = str_cat("view ", generation_.value, " of ", pluralize(chosen.size(), "member", "members"));
  log(str_cat(reason_, adopts ? " goes on: all are attached again, and train in it"
                       : all  ? " is formed: all are attached"
                              : str_cat(" is formed, of ", places, " places")));
  effects_.report_changed = true;
}

// A member of the view has: training is over, and rank 0 may be saving yet.
bool CoordinatorCore::Impl::someone_has_finished() const {
  return std::ranges::any_of(members(), [](const Slot& s) { return s.rank >= 0 && s.left && s.finished; });
}

// The next view has the same members, and other shares.
void CoordinatorCore::Impl::level_shares() {
  if (!ring_ || state_ != JobState::kRunning || suspicions_.open() || !judges() || someone_has_finished())
    return;
  if (const auto why = shares_.due()) drain_for_next_view(*why);
}

// Whether the members of the view, whose ranks are set, have other shares than before.
bool CoordinatorCore::Impl::begin_shares(const std::vector<Slot*>& chosen, bool adopts) {
  if (!ring_) return false;
  std::vector<BatchShares::Member> members;
  std::vector<double> held;
  for (const Slot* const slot : chosen) {
    members.push_back({slot->hello ? slot->hello->member_id() : "", slot->name()});
    held.push_back(slot->hello ? slot->hello->held_share() : 0);
  }
  if (adopts) {
    shares_.adopt(std::move(members), held);
    return false;
  }
  auto change = shares_.begin_view(generation_, std::move(members));
  if (!change) {
    if (shares_.even()) rebalance_.reset();  // it tells of another view's
    return false;
  }
  effects_.rebalance = rebalance_ = std::move(change);
  return true;
}

// Joiners come when all that are wanted have the state, or do not get it from those who train: then the next
// view begins with a copy of it. Those whose places are to go leave.
void CoordinatorCore::Impl::take_in_joiners() {
  if (!ring_ || state_ != JobState::kRunning || suspicions_.open() || !judges()) return;
  if (someone_has_finished()) return;
  for (const Slot& slot : members()) {
    if (slot.surplus && slot.rank >= 0) return drain_for_next_view(str_cat(slot.name(), " leaves"));
  }
  if (std::ranges::count_if(members(), [](const Slot& s) { return s.rank >= 0; }) > places_.most_trainers())
    return drain_for_next_view("the job is smaller now");
  const std::vector<Slot*> wanted = places_.wanted_newcomers();
  bool waits = false;
  for (Slot* const slot : wanted) {
    const bool has_none = !slot->viewed && slot->catch_up == Slot::CatchUp::kNone;
    if (has_none && slot->hello->catches_up()) begin_catch_up(*slot);
    waits |= slot->catch_up == Slot::CatchUp::kUnderWay;
  }
  if (wanted.empty() || waits) return;
  const auto in_view = std::ranges::count_if(members(), [](const Slot& s) { return s.rank >= 0; });
  const bool replaces = places_.successor() != nullptr && in_view >= places_.most_trainers();
  std::string names;
  for (const Slot* const slot : wanted) names += str_cat(names.empty() ? "" : ", ", slot->name());
  drain_for_next_view(replaces ? str_cat(places_.predecessor().name(), " is replaced")
                               : str_cat(names, wanted.size() == 1 ? " joins" : " join"));
}

void CoordinatorCore::Impl::begin_catch_up(Slot& newcomer) {
  std::vector<const Slot*> members_of_view;
  for (const Slot& slot : members()) {
    if (slot.attached() && slot.rank >= 0 && slot.hello->catches_up()) members_of_view.push_back(&slot);
  }
  // One that holds the others back anyway, and is to leave, gives nothing where others can.
  const Slot* const leaves = places_.successor() == nullptr ? nullptr : &places_.predecessor();
  if (members_of_view.size() > 1) std::erase(members_of_view, leaves);
  v1::CoordinatorMessage message;
  v1::View& group = *message.mutable_catch_up()->mutable_group();
  group.set_generation(generation_.value);
  *group.add_members() = view_member(newcomer);
  std::vector<StreamId> to = {newcomer.stream};
  const std::size_t sources = std::min(members_of_view.size(), kMostSources);
  for (std::size_t i = 0; i < sources; ++i) {  // spread over the view
    const Slot& source = *members_of_view[i * members_of_view.size() / sources];
    *group.add_members() = view_member(source);
    to.push_back(source.stream);
  }
  newcomer.holds = false;
  newcomer.catch_up = sources == 0 ? Slot::CatchUp::kFailed : Slot::CatchUp::kUnderWay;
  if (sources == 0) return;
  newcomer.catch_up_word = message;
  for (const StreamId stream : to) effects_.send.push_back({stream, message});
  log(str_cat(newcomer.name(), " gets the state from ", pluralize(sources, "member", "members"),
              " while they train"));
}

void CoordinatorCore::Impl::form_ring() {
  shortage_.reset();
  const Places::Gathering gathering =
      generation_.value == 0 ? places_.gathered_ring() : Places::Gathering::kOver;
  if (gathering == Places::Gathering::kWaits) return;
  const bool begun = std::ranges::any_of(members(), [](const Slot& s) { return s.attached() && s.viewed; });
  // Its work is done: where rank 0 was lost since, others do the rest without it.
  const auto is_done = [](const Slot& s) { return s.left && s.finished; };
  const bool all =
      std::ranges::all_of(members(), [&](const Slot& s) { return s.attached() || s.gone() || is_done(s); });
  const bool overdue = config_.elastic && now_ - form_since_ >= config_.start_timeout;
  // Members that stand by do not stand in for those that have trained, and may come yet.
  const bool trained = config_.trained_before || std::ranges::any_of(members(), &Slot::finished_before);
  const bool rejoined = now_ - gathers_since_ >= config_.rejoin_grace;  // they come back by then
  const bool enough =
      places_.standby() > 0 && !trained && rejoined && places_.attached_trainers() >= places_.most_trainers();
  if (!begun && !all && !overdue && !enough) return;
  const auto done = static_cast<int>(std::ranges::count_if(members(), is_done));
  const int least = config_.min_trainers - done;
  std::vector<Slot*> chosen = places_.candidates(gathering, begun, false);
  // The one that has the state may be among those who stand by.
  const bool holds = std::ranges::any_of(chosen, &Slot::may_hold);
  if (!holds || static_cast<int>(chosen.size()) < least) chosen = places_.candidates(gathering, begun, true);
  const int trainers = static_cast<int>(chosen.size());
  if (trainers < least || chosen.empty()) {
    shortage_ = {.here = trainers + done, .missing = std::max(least - trainers, 1)};
    reason_ = str_cat("waiting for ", pluralize(shortage_->missing, "member", "members"), " to attach");
    return miss_lost();
  }
  std::uint64_t held = 0;
  for (const Slot* slot : chosen) held = std::max<std::uint64_t>(held, slot->hello->held_generation());
  const bool adopts = gathering == Places::Gathering::kAdopts && begun;
  if (adopts) std::ranges::sort(chosen, {}, [](const Slot* slot) { return slot->hello->held_rank(); });
  if (!adopts && checks_first(chosen)) return;
  if (!adopts) hand_over(chosen);
  form(held, chosen, adopts);
}

// Whether a first view of these waits for the check before it. Who has trained, or has heard of a view, is
// not checked.
bool CoordinatorCore::Impl::checks_first(const std::vector<Slot*>& chosen) {
  if (preflight_.is_over()) return false;
  const bool trained =
      config_.trained_before || generation_.value > 0 || std::ranges::any_of(members(), [](const Slot& s) {
        return s.viewed || s.finished_before || (s.hello && s.hello->known_generation() > 0);
      });
  if (trained) preflight_.skip();
  std::vector<Preflight::Member> checked;
  for (const Slot* const slot : chosen)
    checked.push_back({slot->stream, view_member(*slot), slot->hello->host(), slot->phase == Phase::kWaiting,
                       slot->hello->answers_preflight()});
  auto result = preflight_.consider(checked, places_.most_trainers(), now_, effects_.send);
  if (!preflight_.is_over()) reason_ = "the members are checked before the first step";
  if (!result) {
    if (preflight_.is_over() && !trained && preflight_result_)
      log("no other pod has come in time: training begins without it");
    return !preflight_.is_over();
  }
  log(result->message);
  for (const api::UnfitMember& each : result->unfit) {
    if (each.excluded) exclude(each);
  }
  effects_.preflight = preflight_result_ = std::move(result);
  effects_.report_changed = true;
  return !preflight_.is_over();
}

void CoordinatorCore::Impl::exclude(const api::UnfitMember& member) {
  Slot& slot = *places_.slot_of(static_cast<int>(member.role), member.index);
  api::Fault fault{.kind = api::FaultKind::kUnfit,
                   .role = slot.role,
                   .index = slot.index,
                   .pod = member.pod,
                   .host = member.host,
                   .pid = slot.hello->pid(),
                   .cause = api::RestartCause::kUnfit};
  fault.evidence.push_back({api::ObservationKind::kUnfit, diagnosis::figures_of(member)});
  leave_behind(slot, std::move(fault));
}

// The member that is to be replaced has no rank in the next view, and another one has.
void CoordinatorCore::Impl::hand_over(std::vector<Slot*>& chosen) {
  Slot* const next = places_.successor();
  if (next == nullptr) return;
  Slot& place = places_.predecessor();
  if (std::ranges::find(chosen, &place) != chosen.end()) return;
  take_over();
  std::ranges::replace(chosen, next, &place);
  std::ranges::sort(chosen);  // by number, as ranks are
}

void CoordinatorCore::Impl::take_over() {
  const Slot& before = places_.predecessor();
  if (before.attached()) fence(before.stream, "another one has its place");
  const Slot& now = places_.hand_over();
  handed_over_ = {now.role, now.index, now.incarnation};
  stragglers_.forget(number(now));
  if (now.attached())
    std::erase_if(lost_, [&](const Lost& each) {
      return each.fault.role == now.role && each.fault.index == now.index;
    });
  log(str_cat(now.name(), " is replaced", now.hello ? str_cat(" by pod ", now.hello->pod()) : ""));
  effects_.report_changed = true;
}

// Too few are here. Those that were lost may be missed now, since the job has become smaller: who is not
// replaced never comes.
void CoordinatorCore::Impl::miss_lost() {
  for (const Lost& each : lost_) {
    const bool missed =
        config_.on_member_lost(each.fault, places_.trainers_left()).action == LossAction::kFailJob;
    if (missed) return carry_out(api::Fault(each.fault));
  }
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

// `keeps_ranks`: those of a view that is adopted, in which some may have finished.
void CoordinatorCore::Impl::make_view(const std::vector<Slot*>& chosen, bool keeps_ranks) {
  view_ = {};
  view_.set_generation(generation_.value);
  view_.set_trainers(static_cast<std::uint32_t>(places_.most_trainers()));
  ViewRecord record{generation_, {}};
  const auto trainers = std::ranges::count_if(chosen, [](const Slot* s) { return s->trains(); });
  for (Slot& slot : members()) {
    slot.rank = -1;
    slot.catch_up = Slot::CatchUp::kNone;
  }
  int next = 0;
  for (Slot* const each : chosen) {
    Slot& slot = *each;
    slot.rank = keeps_ranks ? static_cast<int>(slot.hello->held_rank()) : next;
    ++next;
    slot.viewed = true;
    slot.part = Part::kNone;
    slot.behind = !keeps_ranks;
    slot.pace.new_view();
    if (keeps_ranks) slot.pace.took_steps_in_view();
    slot.drained = slot.gone();
    slot.served = false;
    v1::ViewMember& member = *view_.add_members();
    member = view_member(slot);
    if (slot.trains())
      member.set_share(ring_ ? shares_.share(static_cast<std::size_t>(view_.members_size() - 1))
                             : 1.0 / static_cast<double>(trainers));
    record.members.push_back(slot.name());
  }
  effects_.view = std::move(record);
}

v1::ViewMember CoordinatorCore::Impl::view_member(const Slot& slot) {
  v1::ViewMember member;
  member.set_role(static_cast<v1::RoleKind>(slot.role));
  member.set_index(static_cast<std::uint32_t>(slot.index));
  if (!slot.hello) return member;
  member.set_member_id(slot.hello->member_id());
  member.set_pod(slot.hello->pod());
  member.set_host_id(slot.hello->host_id());
  *member.mutable_address() = slot.hello->address();
  return member;
}

void CoordinatorCore::Impl::drain_for_next_view(const std::string& why) {
  suspicions_.clear();
  if (state_ == JobState::kForming) return;
  if (state_ == JobState::kRunning) watch_.drain_begins(now_);
  state_ = JobState::kDraining;
  view_changes_.ends(why);
  reason_ = drain_reason_ = str_cat("view ", generation_.value, " ends: ", why);
  log(reason_);
  for (const Slot& slot : slots()) {
    if (slot.attached() && slot.rank >= 0) send_drain(slot, drain_reason_);
  }
}

// The members of the view wait for one that is not in it any more: the next view ends that.
void CoordinatorCore::Impl::form_anew(std::string why) {
  suspicions_.view_is_over();
  state_ = JobState::kForming;
  form_since_ = now_;
  reason_ = std::move(why);
  log(reason_);
}

void CoordinatorCore::Impl::end(JobState state, std::string reason, bool finished) {
  state_ = state;
  reason_ = std::move(reason);
  effects_.report_changed = true;
  log(str_cat("the job is ", job_state_name(state_), ": ", reason_));
  progress_.end(now_);
  choose_saver();
  for (Slot& slot : slots()) {
    // For the next attempt.
    const bool stays = slot.observes() && (state_ == JobState::kFailed || another_follows_);
    if (!slot.attached() || stays) continue;
    evict(slot.stream, reason_, finished, true);
    slot.stream = {};
    slot.left |= finished;  // servers and observers say no goodbye: this is theirs
  }
}

// In a ring all hold the same: where rank 0 is lost, or is attached and can't (it is frozen, or hangs, or
// seems to), the next one saves. Rank 0 does by itself, also where its peers can't reach it.
void CoordinatorCore::Impl::choose_saver() {
  const Slot* saver = nullptr;
  const auto comes_before = [&](const Slot& slot) {
    if (saver == nullptr) return true;
    const bool stuck = watch_.may_be_stuck(slot, now_), saver_stuck = watch_.may_be_stuck(*saver, now_);
    return stuck != saver_stuck ? saver_stuck : slot.rank < saver->rank;
  };
  for (const Slot& slot : members()) {
    const bool at_fault = verdict_ && verdict_->role == slot.role && verdict_->index == slot.index &&
                          verdict_->kind != api::FaultKind::kUnreachable;
    if (ring_ && !at_fault && slot.attached() && slot.rank >= 0 && comes_before(slot)) saver = &slot;
  }
  saver_ = saver == nullptr || saver->rank == 0 ? StreamId() : saver->stream;
}

void CoordinatorCore::Impl::send_view(const Slot& to) {
  v1::CoordinatorMessage message;
  *message.mutable_view() = view_;
  effects_.send.push_back({to.stream, std::move(message)});
}

void CoordinatorCore::Impl::send_save() {
  const Slot* const to = leader();
  if (state_ != JobState::kRunning || !save_request_.is_open() || to == nullptr || !to->attached()) return;
  v1::CoordinatorMessage message;
  message.mutable_save();
  effects_.send.push_back({to->stream, std::move(message)});
}

void CoordinatorCore::Impl::send_drain(const Slot& to, const std::string& reason) {
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_generation(std::max<std::uint64_t>(1, generation_.value));
  message.mutable_drain()->set_reason(reason);
  effects_.send.push_back({to.stream, std::move(message)});
}

}  // namespace paceline::coordinator
