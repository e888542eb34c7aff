#include "controller/coordinator/core_listener.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.h"
#include "controller/coordinator/core_hello.h"
#include "controller/diagnosis/straggler_text.h"
#include "proto/telemetry.h"

namespace paceline::coordinator {

Listener::Listener(CoreConfig config, TimePoint now)
    : config_(std::move(config)),
      places_(config_),
      progress_(now, config_.goodput_before),
      began_(now),
      now_(now) {
  for (const Incarnation& each : config_.incarnations) {
    Slot* const slot = places_.slot_of(static_cast<int>(each.role), each.index);
    if (slot != nullptr) slot->incarnation = std::max(slot->incarnation, each.number);
  }
}

Effects Listener::step(const Input& input, TimePoint now) {
  now_ = std::max(now, now_);
  effects_.report_changed = !std::holds_alternative<Tick>(input);
  std::visit([this](const auto& in) { on(in); }, input);
  return std::exchange(effects_, {});
}

void Listener::on(const Attached& in) {
  if (places_.slot_of(in.stream) != nullptr) return;
  if (const std::string error = hello_error(in.hello, config_); !error.empty()) {
    // One of a later attempt finds that one's coordinator when it comes again.
    if (is_of_later_attempt(in.hello, config_)) return effects_.close.push_back(in.stream);
    return refuse(in.stream, error);
  }
  Slot& slot = *places_.slot_of(static_cast<int>(in.hello.role()), in.hello.index());
  if (in.hello.incarnation() < slot.incarnation)
    return refuse(in.stream, str_cat("pod ", in.hello.pod(), " was ", slot.name(), ", and another one is"));
  const bool same = slot.hello && slot.hello->member_id() == in.hello.member_id();
  if (slot.attached()) effects_.close.push_back(slot.stream);
  if (!same) {
    leave(slot);
    slot.vacate();
    slot.incarnation = in.hello.incarnation();
  }
  slot.hello = in.hello;
  slot.stream = in.stream;
  slot.last_heard = now_;
  slot.phase = Phase::kTraining;
  welcome(slot);
}

void Listener::welcome(const Slot& slot) {
  const auto ms = [](Duration duration) {
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(duration / std::chrono::milliseconds(1), 0,
                                                               std::numeric_limits<std::uint32_t>::max()));
  };
  v1::CoordinatorMessage message;
  v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_job(config_.job);
  welcome.set_heartbeat_interval_ms(std::max(1U, ms(config_.heartbeat_interval)));
  welcome.set_reattach_limit_ms(ms(config_.reattach_limit));
  effects_.send.push_back({slot.stream, std::move(message)});
}

void Listener::refuse(StreamId stream, const std::string& reason) {
  effects_.reasons.push_back(str_cat("stream ", stream.value, " is refused: ", reason));
  v1::CoordinatorMessage message;
  message.mutable_evict()->set_reason(cut(reason));
  effects_.send.push_back({stream, std::move(message)});
  effects_.close.push_back(stream);
}

void Listener::on(const Received& in) {
  Slot* const slot = places_.slot_of(in.stream);
  if (slot == nullptr) return;
  slot->last_heard = now_;
  if (in.message.has_heartbeat()) return on_heartbeat(*slot, in.message.heartbeat());
  if (!in.message.has_leaving()) return;
  effects_.close.push_back(slot->stream);
  slot->stream = {};
}

void Listener::on(const StreamEnded& in) {
  if (Slot* const slot = places_.slot_of(in.stream)) slot->stream = {};  // it may come back
}

// The others are judged by steps of which all have told: one that is quiet would hold that up.
void Listener::drop_those_behind(Step newest) {
  for (Slot& slot : places_.slots()) {
    if (slot.has_stepped && slot.step < newest - kFarBehind && now_ - slot.stepped_at >= kQuiet) leave(slot);
  }
}

// The others are judged without it from now on.
void Listener::leave(Slot& slot) {
  if (!std::exchange(slot.has_stepped, false)) return;
  slot.rank = -1;
  stragglers_.forget(places_.number(slot));
  form_view();
  note_stragglers();
}

void Listener::on_heartbeat(Slot& slot, const v1::Heartbeat& heartbeat) {
  if (const std::string error = heartbeat_error(heartbeat, generation_); !error.empty()) {
    refuse(slot.stream, error);
    slot.stream = {};
    return leave(slot);
  }
  if (heartbeat.has_gpu()) slot.telemetry.gpu = telemetry_of(heartbeat.gpu());
  if (heartbeat.has_kernel()) slot.telemetry.kernel = telemetry_of(heartbeat.kernel());
  slot.step = sane_step(heartbeat.step());
  if (heartbeat.number() > 0) {
    v1::CoordinatorMessage message;
    message.mutable_taken()->set_heartbeat(heartbeat.number());
    effects_.send.push_back({slot.stream, std::move(message)});
    if (heartbeat.number() <= slot.taken) return;  // it brings what was counted before
    slot.taken = heartbeat.number();
  }
  if (heartbeat.step_times_size() > 0) count_steps(slot, heartbeat);
  if (leads(slot)) {
    progress_.rank_zero(heartbeat, now_);
    progress_.records_of_rank_zero(heartbeat, now_, effects_);
  }
}

void Listener::count_steps(Slot& slot, const v1::Heartbeat& heartbeat) {
  if (!slot.trains()) return;
  if (!std::exchange(slot.has_stepped, true)) form_view();
  slot.stepped_at = now_;
  set_means(from_wire(heartbeat.times()), std::max<std::int64_t>(1, heartbeat.steps()), slot.telemetry);
  MemberSteps steps{slot.role, slot.index, slot.rank, {}, {}};
  for (const std::int64_t step : heartbeat.step_time_steps()) steps.steps.push_back(sane_step(step));
  for (const v1::StepTimes& times : heartbeat.step_times()) steps.times.push_back(from_wire(times));
  stragglers_.add(slot, places_.number(slot), steps);
  effects_.member_steps.push_back(std::move(steps));
  drop_those_behind(slot.step);
  note_stragglers();
}

void Listener::form_view() {
  ViewRecord view{{++generation_.value}, {}};
  int rank = 0;
  for (Slot& slot : places_.slots()) {
    if (!slot.trains()) continue;
    slot.rank = slot.has_stepped ? rank : -1;
    if (slot.has_stepped) view.members.push_back(slot.name());
    ++rank;
  }
  stragglers_.begin_view(places_.slots());
  progress_.new_view();
  effects_.view = std::move(view);
}

void Listener::note_stragglers() {
  for (StragglerChange& each : stragglers_.conclude(places_.slots())) {
    effects_.reasons.push_back(each.found ? each.straggler.message : diagnosis::end_of(each.straggler));
    effects_.stragglers.push_back(std::move(each));
  }
}

bool Listener::leads(const Slot& slot) const {
  const auto first = std::ranges::find_if(places_.slots(), &Slot::has_stepped);
  return first != places_.slots().end() && &*first == &slot;
}

Report Listener::report(TimePoint now) const {
  Report report;
  report.job = config_.job;
  report.state = JobState::kRunning;
  report.in_state = std::max(now - began_, Duration::zero());
  report.generation = generation_;
  for (const Slot& slot : places_.slots()) report.members.push_back(slot.report(now));
  progress_.fill(report, now);
  report.stragglers = stragglers_.now(places_.slots());
  report.cleared = stragglers_.cleared();
  return report;
}

}  // namespace paceline::coordinator
