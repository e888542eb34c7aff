#include "controller/coordinator/core.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/pluralize.h"
#include "base/process_end.h"
#include "controller/coordinator/core_impl.h"
#include "controller/coordinator/core_listener.h"
#include "controller/diagnosis/diagnosis.h"
#include "controller/diagnosis/straggler_text.h"
#include "controller/plan/pods.h"
#include "proto/telemetry.h"

namespace paceline::coordinator {

namespace {

using Seen = api::ObservationKind;

Phase from_wire(v1::MemberPhase phase) {
  return v1::MemberPhase_IsValid(phase) ? static_cast<Phase>(phase) : Phase::kStarting;
}

Part from_wire(v1::StepPart part) {
  return v1::StepPart_IsValid(part) ? static_cast<Part>(part) : Part::kNone;
}

// A member names the cause of its own failure. A newer member may name one that is unknown here.
Seen seen_in(v1::Leaving::Cause cause) {
  switch (cause) {
    case v1::Leaving::OUT_OF_MEMORY:
      return Seen::kOutOfMemory;
    case v1::Leaving::NOT_FINITE:
      return Seen::kNotFinite;
    case v1::Leaving::DATA_UNREADABLE:
      return Seen::kDataUnreadable;
    default:
      return Seen::kSaid;
  }
}

// Members end so, too, where they have lost another one and no coordinator is there to be told.
bool may_follow_from_another(const PodFact& end) {
  return !end.signal && (end.exit_code == kExitFailed || end.exit_code == kExitEnded);
}

}  // namespace

CoordinatorCore::Impl::Impl(CoreConfig config, TimePoint now)
    : config_(std::move(config)),
      ring_(!config_.training.has_parameter_server()),
      places_(config_),
      progress_(now, config_.goodput_before),
      view_changes_(config_.restarts_from),
      watch_(config_, places_),
      suspicions_(config_, places_, watch_),
      stragglers_(ring_ || config_.training.parameter_server().synchronization() ==
                               v1::ParameterServerSpec::SYNCHRONOUS,
                  config_.stragglers),
      shares_(config_.training.global_batch_size(), config_.rebalance),
      preflight_(ring_ ? config_.preflight : std::nullopt),
      last_now_(now),
      form_since_(now),
      state_since_(now) {
  save_request_.ask(config_.save_request, 0);
  for (const Incarnation& each : config_.incarnations) {
    Slot* slot = places_.slot_of(static_cast<int>(each.role), each.index);
    if (slot != nullptr && !slot->observes()) slot->incarnation = std::max(slot->incarnation, each.number);
  }
  for (const LostMember& each : config_.lost) {
    Slot* slot = places_.slot_of(static_cast<int>(each.fault.role), each.fault.index);
    if (slot == nullptr || slot->observes()) continue;
    slot->lost = slot->drained = true;
    lost_.push_back({each.fault, now});
  }
  if (config_.handover && ring_) places_.add_successor(*config_.handover);
  for (const FinishedMember& each : config_.finished) {
    Slot* slot = places_.slot_of(static_cast<int>(each.role), each.index);
    if (slot != nullptr && slot->trains() && number(*slot) != 0 && !slot->lost) note_finished(*slot);
  }
  const auto gone = std::count_if(slots().begin(), slots().end(), [](const Slot& s) { return s.gone(); });
  reason_ = str_cat("waiting for ",
                    pluralize(static_cast<std::ptrdiff_t>(members().size()) - gone, "member", "members"),
                    " to attach");
}

Effects CoordinatorCore::Impl::step(const Input& input, TimePoint now) {
  effects_.report_changed = !std::holds_alternative<Tick>(input);
  now_ = std::max(now, last_now_);
  forgive_own_absence();
  std::visit([this](const auto& in) { on(in); }, input);
  settle();
  if (state_ != state_before_) {
    state_before_ = state_;
    state_since_ = now_;
  }
  return std::exchange(effects_, {});
}

void CoordinatorCore::Impl::on(const Attached& in) {
  if (places_.slot_of(in.stream) != nullptr) return;
  const std::string error = hello_error(in.hello, config_);
  if (!error.empty() && is_of_later_attempt(in.hello, config_))
    return put_off(
        in, str_cat("it is of attempt ", in.hello.attempt(), ", and this is attempt ", config_.attempt));
  if (!error.empty()) return refuse(in.stream, error);
  const auto number = static_cast<std::int64_t>(in.hello.incarnation());
  if (const auto gone = given_up_as(in.hello.role(), in.hello.index(), number)) {
    if (in.hello.held_generation() == 0)
      return refuse_lost(in.stream, str_cat("pod ", in.hello.pod(), " is not to take over any more"));
    // It had taken over before that: an earlier coordinator's word of it came too late.
    if (places_.successor() == nullptr) places_.add_successor(*gone);
  }
  Slot& slot = *places_.slot_for(in.hello.role(), in.hello.index(), number);
  if (const Slot* other = places_.other_known_as(in.hello.member_id(), slot)) {
    return refuse(in.stream, str_cat("its member_id, ", in.hello.member_id(), ", is ", other->name(),
                                     "'s: each process has its own"));
  }
  if (slot.observes()) return attach_observer(slot, in);
  if (is_final(state_) || stopping_) {
    return refuse(in.stream, str_cat("the job has ended: ", reason_), state_ == JobState::kFinished);
  }
  const bool same = slot.hello && slot.hello->member_id() == in.hello.member_id();
  if (slot.left) return refuse(in.stream, str_cat(slot.name(), " has left already"));
  const bool replaces = is_replaced_by(slot, in.hello);
  if (slot.lost && !replaces)
    return refuse_lost(in.stream, str_cat(slot.name(), " was lost, and the others go on without it"));
  if (in.hello.incarnation() < slot.incarnation)
    return refuse_lost(in.stream,
                       str_cat("pod ", in.hello.pod(), " was ", slot.name(), ", and another one is now"));
  if (replaces && slot.attached()) return put_off(in, "its place is not free yet");
  if (same && slot.attached()) {
    effects_.close.push_back(slot.stream);  // of the two this may be the newer one: then it comes again
  } else if (!same && slot.attached()) {
    return refuse(in.stream, str_cat(slot.name(), " is attached already, as ", slot.hello->member_id()));
  } else if (!same && slot.hello && slot.rank >= 0 && state_ != JobState::kForming) {
    return refuse(in.stream, str_cat(slot.name(), " is a member of view ", generation_.value, " as ",
                                     slot.hello->member_id()));
  }
  bind(slot, in);
  if (slot.successor && in.hello.held_generation() > 0) take_over();  // an earlier coordinator has seen to it
}

std::optional<Incarnation> CoordinatorCore::Impl::given_up_as(int role, std::int64_t index,
                                                              std::int64_t number) {
  const auto one = std::ranges::find_if(config_.given_up, [&](const Incarnation& each) {
    return static_cast<int>(each.role) == role && each.index == index && each.number == number;
  });
  if (!ring_ || one == config_.given_up.end()) return std::nullopt;
  const Slot* const place = places_.slot_of(static_cast<int>(one->role), one->index);
  const bool is_later =
      place != nullptr && place->trains() && !place->surplus && place->incarnation < one->number;
  return is_later ? std::optional(*one) : std::nullopt;
}

// It comes again: of a later attempt until the controller has seen that in the job's status.
void CoordinatorCore::Impl::put_off(const Attached& in, const std::string& why) {
  log(str_cat("stream ", in.stream.value, " is put off: pod ", cut(in.hello.pod(), kMaxNameBytes), ": ",
              why));
  effects_.close.push_back(in.stream);
}

// A ring may have lost the member in this place: the next one's incarnation is higher.
bool CoordinatorCore::Impl::is_replaced_by(const Slot& slot, const v1::Hello& hello) const {
  if (!ring_ || hello.incarnation() < slot.incarnation) return false;
  return slot.lost || (slot.hello && hello.incarnation() > slot.hello->incarnation());
}

// The newest one counts: of two, the other is what a lost node or a broken connection has left. It stays
// where the job has failed or is started anew: whoever begins another attempt finds it still there.
void CoordinatorCore::Impl::attach_observer(Slot& slot, const Attached& in) {
  if ((stopping_ && !another_follows_) || state_ == JobState::kFinished)
    return refuse(in.stream, str_cat("the job has ended: ", reason_), state_ == JobState::kFinished);
  if (slot.attached())
    evict(slot.stream, str_cat(slot.name(), " has attached again by another stream"), false, true);
  bind(slot, in);
  slot.left = slot.served = slot.told_over = false;
}

void CoordinatorCore::Impl::bind(Slot& slot, const Attached& in) {
  const bool again = slot.hello && slot.hello->member_id() == in.hello.member_id();
  if (again) slot.gaps.add(now_ - slot.last_heard);
  if (!again) slot.vacate();
  if (!places_.someone_attached()) gathers_since_ = now_;
  slot.hello = in.hello;
  slot.holds |= in.hello.held_generation() == 0 && in.hello.known_generation() > 0;
  slot.incarnation = std::max<std::int64_t>(slot.incarnation, in.hello.incarnation());
  slot.viewed |= in.hello.held_generation() > 0;
  if (slot.viewed) slot.pace.took_steps();  // else a coordinator that has just begun finds none that hangs
  std::erase_if(lost_, [&](const Lost& each) {
    return !slot.lost && each.fault.role == slot.role && each.fault.index == slot.index;
  });
  if (!config_.same_machine) slot.hello->clear_pid();  // 1 in every container
  slot.stream = in.stream;
  slot.last_heard = now_;
  slot.held = Slot::Held::kUntold;
  slot.evidence.reset();
  slot.exit_code.reset();
  slot.signal.reset();
  v1::CoordinatorMessage message;
  v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_job(config_.job);
  *welcome.mutable_training() = config_.training;
  welcome.set_elastic(config_.elastic);
  // The next members go on from the newest checkpoint where all of a view are lost.
  if (generation_.value > 0 || config_.trained_before || places_.someone_finished())
    welcome.mutable_training()->mutable_checkpoint()->set_resume(true);
  welcome.set_heartbeat_interval_ms(static_cast<std::uint32_t>(
      std::max<std::int64_t>(1, config_.heartbeat_interval / std::chrono::milliseconds(1))));
  welcome.set_link_key(config_.link_key);
  welcome.set_reattach_limit_ms(static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      config_.reattach_limit / std::chrono::milliseconds(1), 0, std::numeric_limits<std::uint32_t>::max())));
  effects_.send.push_back({slot.stream, std::move(message)});
  if (slot.catch_up == Slot::CatchUp::kUnderWay) effects_.send.push_back({slot.stream, slot.catch_up_word});
  log(str_cat(slot.name(), again ? " attached again as " : " attached as ", in.hello.member_id()));
  if (slot.rank >= 0 && in.hello.held_generation() != generation_.value) send_view(slot);
  if (slot.rank >= 0 && state_ == JobState::kDraining) send_drain(slot, drain_reason_);
  if (slot.rank == 0) send_save();
}

void CoordinatorCore::Impl::on(const Received& in) {
  Slot* slot = places_.slot_of(in.stream);
  if (slot == nullptr) return;  // evicted, or has left: what was still under way
  slot->gaps.add(now_ - slot->last_heard);
  slot->last_heard = now_;
  switch (in.message.kind_case()) {
    case v1::MemberMessage::kHello:
      return break_protocol(*slot, "a second Hello");
    case v1::MemberMessage::kHeartbeat:
      return on_heartbeat(*slot, in.message.heartbeat());
    case v1::MemberMessage::kPeerFault:
      return on_peer_fault(*slot, in.message.peer_fault());
    case v1::MemberMessage::kLeaving:
      return on_leaving(*slot, in.message.leaving());
    case v1::MemberMessage::kCheckpoint:
      if (slot->observes()) return break_protocol(*slot, "an observer's checkpoint");
      if (in.message.checkpoint().error().empty())
        watch_.saved(sane_duration(in.message.checkpoint().stall_ns()));
      progress_.checkpoint(in.message.checkpoint(), effects_);
      for (const CheckpointRecord& each : effects_.checkpoints) save_request_.take(each);
      return;
    case v1::MemberMessage::kCaughtUp:
      return on_caught_up(*slot, in.message.caught_up());
    case v1::MemberMessage::kPreflight:
      return preflight_.take(in.stream, in.message.preflight());
    case v1::MemberMessage::KIND_NOT_SET:
      return break_protocol(*slot, "a message without content");
  }
}

void CoordinatorCore::Impl::on_heartbeat(Slot& slot, const v1::Heartbeat& heartbeat) {
  // A member goes on in the view of an earlier coordinator: it may name that until we have one of our own.
  const bool forming = gathers_earlier_view();
  const std::uint64_t held = std::min<std::uint64_t>(slot.hello->held_generation(), kMostCount);
  const Generation newest{slot.rank < 0 ? std::max(generation_.value, held) : generation_.value};
  const std::string error = heartbeat_error(heartbeat, newest);
  if (!error.empty()) return break_protocol(slot, error);
  slot.phase = from_wire(heartbeat.phase());
  if (slot.observes()) return on_observation(slot, heartbeat);
  if (state_ == JobState::kDraining && slot.phase == Phase::kWaiting) slot.drained = true;
  if (forming && newest.value > 0) {
    const bool trains = heartbeat.generation() == newest.value && slot.phase >= Phase::kTraining;
    slot.held = trains ? Slot::Held::kTrains : Slot::Held::kWaits;
  }
  slot.part = slot.phase == Phase::kTraining ? from_wire(heartbeat.part()) : Part::kNone;
  slot.in_part = sane_duration(heartbeat.part_ns());
  const bool in_view = slot.rank >= 0;
  if (in_view && (slot.phase == Phase::kEvaluating || slot.phase == Phase::kCheckpointing)) watch_.busy(now_);
  if (slot.phase != Phase::kCheckpointing) {
    slot.saves_since.reset();
  } else if (!slot.saves_since) {
    slot.saves_since = now_;
  }
  slot.behind = heartbeat.generation() != generation_.value;
  if (in_view && !slot.behind) count(slot, heartbeat);
  if (slot.in_part > kLeastHang && ring_ && state_ == JobState::kRunning && judges()) lose(watch_.hung(now_));
}

// REQUIRES: the heartbeat is of a member of the view, and of the view.
void CoordinatorCore::Impl::count(Slot& slot, const v1::Heartbeat& heartbeat) {
  if (sane_step(heartbeat.step()) > slot.step) slot.stepped_at = now_;
  slot.has_stepped |= heartbeat.steps() > 0;
  slot.step = sane_step(heartbeat.step());
  slot.telemetry.bytes_sent = heartbeat.bytes_sent();
  slot.telemetry.dropped_samples = sane_step(heartbeat.dropped_samples());
  if (heartbeat.has_server()) slot.load.add(heartbeat.server(), now_);
  slot.served = heartbeat.has_server() && slot.phase == Phase::kWaiting;
  if (heartbeat.has_staleness()) slot.telemetry.staleness = telemetry_of(heartbeat.staleness());
  if (heartbeat.has_gpu()) slot.telemetry.gpu = telemetry_of(heartbeat.gpu());
  if (heartbeat.has_kernel()) slot.telemetry.kernel = telemetry_of(heartbeat.kernel());
  if (slot.rank == 0) progress_.rank_zero(heartbeat, now_);
  if (heartbeat.has_view_begin()) note_view_change(heartbeat.view_begin());
  if (heartbeat.has_links()) stragglers_.add_links(slot, number(slot), heartbeat.links());
  if (take(slot, heartbeat)) count_steps(slot, heartbeat);
  check_weights(slot, heartbeat);
}

void CoordinatorCore::Impl::note_view_change(const v1::ViewBegin& word) {
  auto change = view_changes_.begins(word);
  if (!change) return;
  log(diagnosis::text_of(*change));
  if (change->steps_lost > 0 && !change->restarted) progress_.goes_on_from(change->step - 1);
  if (save_request_.begins_at(change->step)) log(save_request_.answer()->error);
  effects_.view_change = view_change_ = std::move(change);
  effects_.report_changed = true;
}

void CoordinatorCore::Impl::on_observation(Slot& slot, const v1::Heartbeat& heartbeat) {
  slot.step = sane_step(heartbeat.step());
  if (heartbeat.has_gpu()) slot.telemetry.gpu = telemetry_of(heartbeat.gpu());
  if (!take(slot, heartbeat)) return;  // sent again, it says what it is by now, and brings what it was then
  slot.served = slot.told_over && slot.phase == Phase::kFinished;
  progress_.evaluations_of_observer(heartbeat, slot.name(), effects_);
}

// Whether it brings what was not counted before. A member sends a heartbeat's records again, under the same
// number, until it is told that they are taken: its stream may have broken in between.
bool CoordinatorCore::Impl::take(Slot& slot, const v1::Heartbeat& heartbeat) {
  if (heartbeat.number() == 0) return true;
  v1::CoordinatorMessage message;
  message.mutable_taken()->set_heartbeat(heartbeat.number());
  effects_.send.push_back({slot.stream, std::move(message)});
  if (heartbeat.number() <= slot.taken) return false;
  slot.taken = heartbeat.number();
  return true;
}

void CoordinatorCore::Impl::count_steps(Slot& slot, const v1::Heartbeat& heartbeat) {
  if (heartbeat.steps() > 0) set_means(from_wire(heartbeat.times()), heartbeat.steps(), slot.telemetry);
  if (slot.rank == 0) progress_.records_of_rank_zero(heartbeat, now_, effects_);
  if (heartbeat.step_times_size() == 0) return;
  MemberSteps steps{slot.role, slot.index, slot.rank, {}, {}};
  for (const std::int64_t step : heartbeat.step_time_steps()) steps.steps.push_back(sane_step(step));
  for (const v1::StepTimes& times : heartbeat.step_times()) steps.times.push_back(from_wire(times));
  for (const StepTimes& each : steps.times) slot.pace.add(each.input + each.compute + each.update);
  stragglers_.add(slot, number(slot), steps);
  effects_.member_steps.push_back(std::move(steps));
  note_stragglers();
  if (slot.rank == 0) consider_shares();  // once for all, since it looks at all
}

void CoordinatorCore::Impl::note_stragglers() {
  effects_.stragglers = stragglers_.conclude(slots());
  for (const StragglerChange& each : effects_.stragglers) {
    log(each.found ? each.straggler.message : diagnosis::end_of(each.straggler));
    effects_.report_changed = true;
  }
}

void CoordinatorCore::Impl::consider_shares() {
  if (!ring_ || !shares_.has_rules() || state_ != JobState::kRunning) return;
  const auto found = stragglers_.now(slots());
  Report progress;
  progress_.fill(progress, now_);
  shares_.consider(
      {.stragglers = found ? std::span<const api::Straggler>(*found) : std::span<const api::Straggler>(),
       .own_seconds = stragglers_.own_times(),
       .left = progress.eta},
      now_);
}

void CoordinatorCore::Impl::on(const Rebalance& in) {
  if (ring_) shares_.set_rules(in.rules);
}

void CoordinatorCore::Impl::on(const Save& in) {
  if (!save_request_.ask(in.request, progress_.step()) || !save_request_.is_open()) return;
  log("a checkpoint is asked for");
  send_save();
}

void CoordinatorCore::Impl::check_weights(const Slot& slot, const v1::Heartbeat& heartbeat) {
  const Step step = heartbeat.weights_hash_step();
  const auto trainers =
      std::count_if(slots().begin(), slots().end(), [](const Slot& s) { return s.trains() && s.rank >= 0; });
  std::vector<int> wrong =
      progress_.weights(slot.rank, static_cast<int>(trainers), step, heartbeat.weights_hash());
  if (wrong.empty()) return;
  const char* const from =
      trainers == 2 ? "the other rank (with two ranks nobody can tell which is wrong)" : "most ranks";
  suspicions_.differ(std::move(wrong), str_cat(from, " after ", pluralize(step, "step", "steps")), now_);
}

void CoordinatorCore::Impl::on_leaving(Slot& slot, const v1::Leaving& leaving) {
  const std::string why = cut(leaving.reason());
  if (slot.successor) {
    effects_.close.push_back(slot.stream);
    slot.stream = {};
    return drop_successor(str_cat("it leaves: ", why));
  }
  slot.step = std::max(slot.step, sane_step(leaving.step()));
  const bool earlier =
      slot.trains() && slot.rank < 0 && gathers_earlier_view() && slot.hello->held_generation() > 0;
  const bool wrote = !leaving.model_path().empty();  // rank 0 of the view that it finished in does
  const bool leads =
      wrote || slot.rank == 0 || (earlier && (ring_ ? slot.hello->held_rank() == 0 : number(slot) == 0));
  if (leads) progress_.reached(slot.step);
  if (leads && !leaving.checkpoint_path().empty()) checkpoint_path_ = cut(leaving.checkpoint_path());
  effects_.close.push_back(slot.stream);
  slot.stream = {};
  slot.left = slot.drained = true;
  const bool finished = leaving.outcome() == v1::Leaving::FINISHED;
  log(str_cat(slot.name(), " leaves: ", finished ? "finished" : why));
  if (slot.observes()) return;
  const bool in_view = slot.rank >= 0 || earlier;
  slot.finished = finished && in_view && !stopping_ && !is_final(state_);
  if (!judges()) return;
  if (finished && !in_view) return lose(slot, {Seen::kSaid, "it left before the first view"}, now_);
  if (finished) {
    slot.phase = Phase::kFinished;
    if (earlier && !leads) return note_finished(slot);
    if (ring_ && !earlier && slot.behind && !wrote) return end_of_view_before(slot);
    if (!leads) return;
    model_path_ = cut(leaving.model_path());
    return wait_for_the_others(slot);
  }
  const bool reports = suspicions_.has_report_by(slot);
  const bool stopped = leaving.outcome() == v1::Leaving::STOPPED;
  const bool follows = stopped && leaving.follows();  // the one that was asked to will say so, or is dead
  lose(slot, {stopped ? Seen::kStopped : seen_in(leaving.cause()), why}, now_, reports || follows);
  slot.evidence->follows = follows && !reports && slot.evidence->soft;
}

// Words about an earlier view are old.
void CoordinatorCore::Impl::on_caught_up(Slot& slot, const v1::CaughtUp& word) {
  if (word.generation() != generation_.value || slot.catch_up == Slot::CatchUp::kNone) return;
  slot.catch_up = word.error().empty() ? Slot::CatchUp::kDone : Slot::CatchUp::kFailed;
  log(word.error().empty() ? str_cat(slot.name(), " has caught up")
                           : str_cat(slot.name(), " does not catch up: ", cut(word.error())));
}

// The member has never come into the newest view, whose end this is not.
void CoordinatorCore::Impl::end_of_view_before(const Slot& slot) {
  form_anew(str_cat(slot.name(), " finished in the view before; the next one is formed without it"));
}

void CoordinatorCore::Impl::wait_for_the_others(const Slot& leader) {
  finish_by_ = now_ + config_.stop_timeout;
  reason_ = str_cat(leader.name(), " has finished; waiting for the others to leave");
}

void CoordinatorCore::Impl::note_end_of_work(Slot& slot) {
  slot.left = slot.drained = slot.finished = true;
  slot.phase = Phase::kFinished;
  slot.evidence.reset();
}

void CoordinatorCore::Impl::note_finished(Slot& slot) {
  note_end_of_work(slot);
  slot.finished_before = true;
  log(str_cat(slot.name(), " has finished in a view of an earlier coordinator"));
}

// A process has ended well, and its goodbye is lost. In a ring all finish after the same step.
bool CoordinatorCore::Impl::take_end_of_work(Slot& slot) {
  const bool trained = config_.trained_before || config_.built_in;
  const bool earlier = trained && gathers_earlier_view();
  const bool finished =
      earlier || (ring_ && (config_.built_in || (slot.rank >= 0 && places_.someone_finished())));
  if (slot.attached() || !slot.trains() || !finished) return false;
  if (earlier) {
    note_finished(slot);
  } else {
    note_end_of_work(slot);
  }
  if (slot.rank >= 0 && slot.behind) {
    end_of_view_before(slot);
  } else if ((earlier ? number(slot) : slot.rank) == 0) {
    wait_for_the_others(slot);
  }
  return true;
}

void CoordinatorCore::Impl::on(const StreamEnded& in) {
  Slot* slot = places_.slot_of(in.stream);
  if (slot == nullptr) return;
  slot->stream = {};
  if (slot->successor) return drop_successor("its stream ended");
  log(str_cat(slot->name(), "'s stream ended without a goodbye", in.reason.empty() ? "" : ": ",
              cut(in.reason)));
  if (!judges() || slot->observes()) return;
  if (slot->ended_well() && take_end_of_work(*slot)) return;
  const bool first = !slot->evidence;
  lose(*slot, {Seen::kStreamEnded, cut(in.reason)}, now_);
  slot->evidence->lapsed = first && !slot->exit_code;
}

void CoordinatorCore::Impl::on(const PodFact& in) {
  Slot* slot = places_.slot_for(static_cast<int>(in.role), in.index, in.incarnation);
  if (slot == nullptr) return log(str_cat("pod ", in.pod, " is nobody's"));
  if (given_up_as(static_cast<int>(in.role), in.index, in.incarnation))
    return log(str_cat("pod ", in.pod, " was to take over, and is not any more"));
  if (slot->successor) return drop_successor(str_cat("pod ", in.pod, " ended"));
  const bool earlier =
      slot->hello ? slot->hello->pod() != in.pod : !in.pod.empty() && slot->last_pod == in.pod;
  if (earlier || in.incarnation < slot->incarnation)
    return log(str_cat("pod ", in.pod, " is of an earlier member"));
  slot->incarnation = in.incarnation;
  const bool replaces = ring_ && slot->lost;
  if (replaces) slot->lost = false;  // this one was to take the place
  if (!slot->hello) slot->last_pod = in.pod;
  const std::string exit = exit_text(in.exit_code, in.signal);
  slot->exit_code = in.exit_code;
  slot->signal = in.signal;
  log(str_cat(slot->name(), "'s pod ", in.pod, " ended", exit.empty() ? "" : ": ", exit));
  if (verdict_ && verdict_->role == in.role && verdict_->index == in.index && !verdict_->exit_code &&
      !verdict_->signal && verdict_->pod == in.pod && is_final(state_) &&
      verdict_->kind == api::FaultKind::kDead) {
    verdict_->exit_code = in.exit_code;
    verdict_->signal = in.signal;
    verdict_ = diagnosis::diagnose({}, std::move(verdict_));
    reason_ = diagnosis::message_of(*verdict_);
  }
  if (!judges() || slot->left || slot->lost || slot->observes()) return;
  const bool may_speak = slot->attached() && slot->trains() && config_.built_in;
  if (slot->ended_well() && may_speak) return;  // its last words may be under way
  if (slot->ended_well() && take_end_of_work(*slot)) return;
  if (slot->evidence) slot->evidence->lapsed = false;
  const bool unheard = config_.trained_before && gathers_earlier_view() && !slot->hello;
  const Seen seen = in.deleted ? Seen::kPodDeleted : slot->hello ? Seen::kPodEnded : Seen::kPodEndedEarly;
  lose(*slot, {seen, cut(in.words)}, now_, unheard && may_follow_from_another(in));
}

void CoordinatorCore::Impl::on(const AbsentMember& in) {
  Slot* slot = places_.slot_of(static_cast<int>(in.role), in.index);
  if (slot == nullptr || slot->observes() || slot->attached() || slot->left || !judges()) return;
  // It was to take the place of one that is lost.
  const bool replaces = ring_ && slot->lost && plan::attempt_in(in.pod).value_or(-1) >= slot->incarnation;
  if (!replaces && (slot->gone() || !(ring_ || gathers_earlier_view()))) return;
  slot->lost = false;
  if (!slot->hello) slot->last_pod = in.pod;
  lose(*slot, in.seen, now_);
}

void CoordinatorCore::Impl::on(const Refused& in) {
  const bool news = !in.pod_uid.empty() && in.pod_uid.size() <= kMaxNameBytes &&
                    std::ranges::find(refused_, in.pod_uid) == refused_.end();
  effects_.report_changed = news;
  if (!news) return;
  log(str_cat("the pod with uid ", in.pod_uid, " has another token than this job"));
  if (refused_.size() >= kMaxRefused) refused_.erase(refused_.begin());
  refused_.push_back(in.pod_uid);
}

void CoordinatorCore::Impl::on(const Resize& in) {
  if (!ring_ || !judges()) return;
  const auto wanted = std::ranges::find(in.roles, Role::kWorker, &ExpectedRole::role);
  const int workers = wanted == in.roles.end() ? 0 : std::min(wanted->count, kMaxMembers);
  const int standby = wanted == in.roles.end() ? 0 : wanted->standby;
  if (const Slot* next = places_.successor();
      next != nullptr && next->role == Role::kWorker && next->index >= workers)
    on(Handover{});
  const int there = places_.set_workers(workers, standby, config_.attempt);
  std::erase_if(config_.roles, [](const ExpectedRole& each) { return each.role == Role::kWorker; });
  config_.roles.push_back({Role::kWorker, workers, standby});
  if (in.on_member_lost) config_.on_member_lost = in.on_member_lost;
  if (there != workers)
    log(str_cat("the job is to have ", pluralize(workers, "worker", "workers"), ", not ", there));
  drop_surplus();
}

// The places that are in no view go: whoever is there still is told that the job is finished for it. One with
// others behind it that stay goes with those: evidence and reports know slots by their numbers.
void CoordinatorCore::Impl::drop_surplus() {
  bool missed = false;
  for (std::size_t i = members().size(); i-- > 0;) {
    Slot& slot = slots()[i];
    if (!slot.surplus || (slot.rank >= 0 && state_ != JobState::kForming && slot.attached())) continue;
    if (slot.attached()) evict(slot.stream, "the job is smaller now", true, true);
    std::erase_if(lost_, [&](const Lost& each) {
      return each.fault.role == slot.role && each.fault.index == slot.index;
    });
    suspicions_.forget(slot);
    // The others of the view may wait for one that is gone already.
    missed |= slot.rank >= 0 && state_ != JobState::kForming && !slot.finished;
    slot.rank = -1;
    slot.stream = {};
    slot.evidence.reset();
    if (i + 1 < members().size()) continue;
    log(str_cat(slot.name(), " has no place any more"));
    places_.remove_last_member();
  }
  if (missed) form_anew("members that were to leave are gone; the next view is formed without them");
}

void CoordinatorCore::Impl::on(const Handover& in) {
  if (!ring_ || !judges()) return;
  const Slot* const next = places_.successor();
  const bool known = next != nullptr && in.to && next->role == in.to->role && next->index == in.to->index &&
                     next->incarnation >= in.to->number;
  if (known) return;
  if (next != nullptr) {
    if (next->attached()) fence(next->stream, "it is not needed any more");
    log(str_cat("nobody is to take over from ", next->name(), " any more"));
    config_.given_up.push_back({next->role, next->index, next->incarnation});
    places_.remove_last_member();
  }
  if (!in.to) return;
  const Slot* const place = places_.slot_of(static_cast<int>(in.to->role), in.to->index);
  if (place == nullptr || !place->trains() || place->surplus || place->incarnation >= in.to->number) return;
  log(str_cat(place->name(), " is to be replaced"));
  places_.add_successor(*in.to);
}

// Another one may come in its place.
void CoordinatorCore::Impl::drop_successor(const std::string& why) {
  Slot& next = *places_.successor();
  log(str_cat("who was to take over from ", next.name(), " is gone: ", why));
  if (next.attached()) fence(next.stream, why);
  next.vacate();
}

void CoordinatorCore::Impl::on(const Stop& in) {
  if (is_final(state_) || stopping_) return;
  stopping_ = true;
  another_follows_ = in.another_follows;
  stop_reason_ = cut(in.reason);
  stop_since_ = now_;
  state_ = JobState::kDraining;
  reason_ = str_cat("stopping: ", stop_reason_);
  log(reason_);
  choose_saver();
  for (const Slot& slot : slots()) {  // rank 0 saves what the servers hold: they are told once nobody trains
    const bool stays = slot.role == Role::kServer || (slot.observes() && another_follows_);
    if (slot.attached() && !stays) evict(slot.stream, stop_reason_, false, false);
  }
}

// Others have the state, and go on: what it holds is not to be written beside what they write.
void CoordinatorCore::Impl::fence(StreamId stream, const std::string& reason) {
  const Slot* const it = places_.slot_of(stream);
  const bool others_hold = std::ranges::any_of(
      members(), [it](const Slot& s) { return &s != it && s.attached() && s.viewed && s.rank >= 0; });
  evict(stream, reason, false, true);
  effects_.send.back().message.mutable_evict()->set_discard(ring_ && others_hold);
}

void CoordinatorCore::Impl::evict(StreamId stream, const std::string& reason, bool finished, bool close) {
  v1::CoordinatorMessage message;
  message.mutable_evict()->set_reason(reason);
  message.mutable_evict()->set_job_finished(finished);
  message.mutable_evict()->set_save(stream.value != 0 && stream == saver_);
  // Rank 0 may wake up, and would save beside the one that does in its place.
  const Slot* const to = places_.slot_of(stream);
  const bool another_saves = saver_.value != 0 && to != nullptr && to->rank == 0;
  // With a server went a part of the weights: nobody shall wait for a snapshot of the rest.
  message.mutable_evict()->set_discard(
      another_saves ||
      (verdict_ && (verdict_->kind == api::FaultKind::kDiverged ||
                    (verdict_->role == Role::kServer && !api::is_own_word(verdict_->kind)))));
  effects_.send.push_back({stream, std::move(message)});
  if (close) effects_.close.push_back(stream);
}

void CoordinatorCore::Impl::break_protocol(Slot& slot, const std::string& what) {
  const std::string text = str_cat("it broke the protocol: ", what);
  log(str_cat(slot.name(), " is evicted: ", text));
  evict(slot.stream, text, false, true);
  slot.stream = {};
  if (judges() && !slot.observes()) lose(slot, {Seen::kBrokeProtocol, what}, now_);
}

bool CoordinatorCore::Impl::is_observer(StreamId stream) const {
  return std::any_of(slots().begin(), slots().end(),
                     [&](const Slot& s) { return s.observes() && s.attached() && s.stream == stream; });
}

CoordinatorCore::CoordinatorCore(CoreConfig config, TimePoint now) {
  PL_CHECK(validate(config).ok(), "the caller has validated the configuration");
  if (config.listens) {
    listener_ = std::make_unique<Listener>(std::move(config), now);
  } else {
    impl_ = std::make_unique<Impl>(std::move(config), now);
  }
}
CoordinatorCore::~CoordinatorCore() = default;
CoordinatorCore::CoordinatorCore(CoordinatorCore&&) noexcept = default;
CoordinatorCore& CoordinatorCore::operator=(CoordinatorCore&&) noexcept = default;

Effects CoordinatorCore::step(const Input& input, TimePoint now) {
  return listener_ ? listener_->step(input, now) : impl_->step(input, now);
}
Report CoordinatorCore::report(TimePoint now) const {
  return listener_ ? listener_->report(now) : impl_->report(now);
}
JobState CoordinatorCore::state() const {
  return listener_ ? JobState::kRunning : impl_->state();
}
bool CoordinatorCore::is_observer(StreamId stream) const {
  return listener_ || impl_->is_observer(stream);
}
TimePoint CoordinatorCore::due() const {
  return listener_ ? TimePoint::max() : impl_->due();
}

}  // namespace paceline::coordinator
