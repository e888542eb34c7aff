#include "runtime/member/progress.h"

#include <algorithm>
#include <bit>
#include <utility>

// The sequence lock follows Boehm, "Can seqlocks get along with programming language memory models?" (2012),
// with data words stored by release and loaded by acquire instead of fences: on x86 both are plain moves. A
// reader that overlaps a write tries again; the writer writes a few times per millisecond at most, for some
// nanoseconds.

namespace paceline::member {

namespace {

void set_times(v1::StepTimes& out, const StepTimes& times) {
  out.set_input_ns(times.input);
  out.set_compute_ns(times.compute);
  out.set_wait_ns(times.wait);
  out.set_transfer_ns(times.transfer);
  out.set_update_ns(times.update);
  out.set_checkpoint_ns(times.checkpoint);
  out.set_step_ns(times.step);
  out.set_left_out_ns(times.left_out);
}

std::uint64_t word(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}
std::int64_t number(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

v1::StepPart to_wire(StepPart part) {
  switch (part) {
    case StepPart::kInput:
      return v1::PART_INPUT;
    case StepPart::kCompute:
      return v1::PART_COMPUTE;
    case StepPart::kWait:
    case StepPart::kTransfer:
      return v1::PART_EXCHANGE;
    case StepPart::kUpdate:
      return v1::PART_UPDATE;
    case StepPart::kCheckpoint:
    case StepPart::kNone:
      break;
  }
  return v1::PART_NONE;
}

constexpr int kLooks = 4;  // at what changes meanwhile: then no part is told

}  // namespace

template <typename Change>
void Progress::write(Change change) {
  Values next = written_;
  change(next);
  const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed);
  sequence_.store(sequence + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kWords; ++i) {
    if (next[i] != written_[i]) words_[i].store(next[i], std::memory_order_release);
  }
  sequence_.store(sequence + 2, std::memory_order_release);
  written_ = next;
}

Progress::Values Progress::read() const {
  while (true) {
    const std::uint64_t before = sequence_.load(std::memory_order_acquire);
    Values values;
    for (std::size_t i = 0; i < kWords; ++i) values[i] = words_[i].load(std::memory_order_acquire);
    if (before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before) return values;
  }
}

// A part that is the same before and after belongs to the values: a step is told between two parts. The time
// is taken first, so that a part is never said to last longer than it does; nor does it last while the whole
// process stands still, as one in a container that is paused.
Progress::Moment Progress::look() {
  Moment moment;
  if (clock_ != nullptr) {
    const TimePoint now = clock_->now();
    if (now - std::exchange(looked_at_, now) > kStandstill) stood_until_ = now;
  }
  for (int i = 0; i < kLooks; ++i) {
    const TimePoint now = clock_ != nullptr ? clock_->now() : TimePoint{};
    moment.part = current_part_.seen();
    moment.values = read();
    if (current_part_.seen() != moment.part) continue;
    if (clock_ != nullptr)
      moment.in_part = std::max(now - std::max(moment.part.since, stood_until_), Duration::zero());
    return moment;
  }
  moment.part = {};
  return moment;
}

void Progress::set_generation(Generation generation) {
  write([&](Values& v) {
    v[kGeneration] = generation.value;
    v[kBeginStep] = 0;
    v[kHashStep] = 0;  // of another view's sums
  });
}

void Progress::set_view_begin(const ViewBegin& begin) {
  write([&](Values& v) {
    v[kBeginView] = word(begin.view.count());
    v[kBeginState] = word(begin.state.count());
    v[kBeginFirst] = word(begin.first_step.count());
    v[kBeginStep] = word(begin.step);
  });
}

void Progress::set_phase(v1::MemberPhase phase) {
  write([&](Values& v) { v[kPhase] = static_cast<std::uint64_t>(phase); });
}

void Progress::set_plan(std::int64_t total_steps, std::int64_t train_samples, std::uint64_t parameter_count) {
  write([&](Values& v) {
    v[kTotalSteps] = word(total_steps);
    v[kTrainSamples] = word(train_samples);
    v[kParameters] = parameter_count;
  });
}

void Progress::set_resumed(Step step, std::int64_t samples) {
  write([&](Values& v) {
    v[kStep] = word(step);
    v[kSamples] = word(samples);
  });
}

void Progress::set_weights_hash(Step step, std::uint64_t hash) {
  write([&](Values& v) {
    v[kHash] = hash;
    v[kHashStep] = word(step);
  });
}

void Progress::offer_weights_hash(Step step, std::uint64_t hash) {
  const std::uint64_t waiting = written_[kHashStep];
  const bool told = waiting == told_hash_step_.load(std::memory_order_relaxed);
  if (told || std::countr_zero(word(step)) >= std::countr_zero(waiting)) set_weights_hash(step, hash);
}

void Progress::step_applied(const AppliedStep& step) {
  // The values before the record, and collect() reads them in the other order: so a heartbeat's `step` is
  // never behind its records.
  write([&](Values& v) {
    v[kStep] = word(step.step);
    v[kSamples] = word(step.samples);
    v[kSent] = step.bytes_sent;
    v[kLeftOut] += word(step.left_out);
    v[kSteps] += 1;
    v[kInput] += word(step.times.input);
    v[kCompute] += word(step.times.compute);
    v[kWait] += word(step.times.wait);
    v[kTransfer] += word(step.times.transfer);
    v[kUpdate] += word(step.times.update);
    v[kCheckpoint] += word(step.times.checkpoint);
    v[kWhole] += word(step.times.step);
  });
  const std::uint64_t head = steps_head_.load(std::memory_order_relaxed);
  if (head - steps_tail_.load(std::memory_order_acquire) < kRingSteps) {
    steps_[head % kRingSteps] = step;
    steps_head_.store(head + 1, std::memory_order_release);
  } else {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Progress::evaluated(const Evaluation& evaluation) {
  auto waiting = evaluations_.lock();
  if (waiting->size() < kWaitingEvaluations) {
    waiting->push_back(evaluation);
    return;
  }
  waiting->back() = evaluation;
  dropped_.fetch_add(1, std::memory_order_relaxed);
}

void Progress::collect(v1::Heartbeat* out) {
  out->Clear();
  collect_steps(out);  // before the values, see step_applied()
  collect_evaluations(out);
  const Moment moment = look();
  const Values &now = moment.values, &before = collected_;
  set_values(moment, out);
  const auto since = [&](Word w) { return number(now[w] - before[w]); };
  out->set_steps(since(kSteps));
  set_times(*out->mutable_times(), {since(kInput), since(kCompute), since(kWait), since(kTransfer),
                                    since(kUpdate), since(kCheckpoint), since(kWhole)});
  collected_ = now;
}

void Progress::refresh(v1::Heartbeat* out) {
  set_values(look(), out);
}

void Progress::set_extra(Extra extra) {
  const std::lock_guard lock(extra_mutex_);
  extra_ = std::move(extra);
}

void Progress::set_device_extra(Extra extra) {
  const std::lock_guard lock(extra_mutex_);
  device_extra_ = std::move(extra);
}

void Progress::set_values(const Moment& moment, v1::Heartbeat* out) {
  const Values& now = moment.values;
  out->clear_view_begin();  // a heartbeat that is told again may have those of the view before
  out->clear_links();
  {
    const std::lock_guard lock(extra_mutex_);
    if (extra_ != nullptr) extra_(*out);
    if (device_extra_ != nullptr) device_extra_(*out);
  }
  out->set_generation(now[kGeneration]);
  out->set_phase(static_cast<v1::MemberPhase>(now[kPhase]));
  out->set_step(number(now[kStep]));
  out->set_samples(number(now[kSamples]));
  out->set_total_steps(number(now[kTotalSteps]));
  out->set_train_samples(number(now[kTrainSamples]));
  out->set_parameter_count(now[kParameters]);
  out->set_weights_hash(now[kHash]);
  out->set_weights_hash_step(number(now[kHashStep]));
  out->set_bytes_sent(now[kSent]);
  out->set_dropped_samples(number(now[kLeftOut]));
  if (now[kBeginStep] > 0) {
    v1::ViewBegin& begin = *out->mutable_view_begin();
    begin.set_view_ns(number(now[kBeginView]));
    begin.set_state_ns(number(now[kBeginState]));
    begin.set_step_ns(number(now[kBeginFirst]));
    begin.set_step(number(now[kBeginStep]));
  }
  const v1::StepPart part = to_wire(moment.part.part);
  out->set_part(part);
  out->set_part_ns(part == v1::PART_NONE ? 0 : moment.in_part.count());
  told_hash_step_.store(now[kHashStep], std::memory_order_relaxed);
}

void Progress::collect_steps(v1::Heartbeat* out) {
  const std::uint64_t tail = steps_tail_.load(std::memory_order_relaxed),
                      head = steps_head_.load(std::memory_order_acquire);
  const std::uint64_t count = head - tail, stride = (count + kMaxPerHeartbeat - 1) / kMaxPerHeartbeat;
  for (std::uint64_t i = 0; i < count; ++i) {
    if ((count - 1 - i) % stride != 0) continue;  // counted from the newest, which is always taken
    const AppliedStep& step = steps_[(tail + i) % kRingSteps];
    out->add_step_time_steps(step.step);
    set_times(*out->add_step_times(), step.times);
    if (!step.has_loss) continue;
    v1::StepRecord& record = *out->add_records();
    record.set_step(step.step);
    record.set_loss(step.loss);
    record.set_learning_rate(step.learning_rate);
    record.set_since_start_ns(step.since_start_ns);
  }
  steps_tail_.store(head, std::memory_order_release);
}

void Progress::collect_evaluations(v1::Heartbeat* out) {
  auto waiting = evaluations_.lock();
  for (std::size_t left = kMaxEvaluations; left > 0 && !waiting->empty(); --left) {
    const Evaluation& evaluation = waiting->front();
    v1::EvaluationRecord& record = *out->add_evaluations();
    record.set_step(evaluation.step);
    record.set_loss(evaluation.loss);
    record.set_accuracy(evaluation.accuracy);
    record.set_samples(evaluation.samples);
    record.set_since_start_ns(evaluation.since_start_ns);
    record.set_target_reached(evaluation.target_reached);
    if (evaluation.auc.has_value()) record.set_auc(*evaluation.auc);
    waiting->pop_front();
  }
}

}  // namespace paceline::member
