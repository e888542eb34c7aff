#include "runtime/collective/schedule_runner.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "runtime/collective/reduce.h"
#include "runtime/transport/futex.h"

namespace paceline::collective {

namespace {

using transport::FrameHeader;
using transport::Interest;
using transport::kFrameHeaderBytes;

constexpr Duration kParkLimit = std::chrono::milliseconds(100);

std::uint32_t checksum_of(const Call& call) {
  const std::uint64_t words[2] = {call.fingerprint(), call.count};
  return crc32c(std::as_bytes(std::span(words)));
}

}  // namespace

ScheduleRunner::ScheduleRunner(transport::Streams& streams, int rank, int world, Generation generation,
                               int spin_turns, const Clock& clock)
    : streams_(streams),
      rank_(rank),
      world_(world),
      generation_(generation),
      spin_turns_(spin_turns),
      clock_(clock),
      arrived_(kFrameBytes),
      contributions_(static_cast<std::size_t>(world)),
      staged_(static_cast<std::size_t>(world)),
      inputs_(static_cast<std::size_t>(world)) {}

RunFailure ScheduleRunner::run(const Call& call, const Plan& plan, int divisor, Deadline deadline,
                               const std::function<bool()>& stopped) {
  call_ = call;
  plan_ = &plan;
  divisor_ = divisor;
  element_ = dtype_bytes(call.dtype);
  call_checksum_ = checksum_of(call);
  ++operation_;
  failure_ = {};
  for (Cursor* cursor : {&send_, &receive_}) {
    cursor->step = cursor->done = 0;
    cursor->in_frame = false;
    cursor->frames.assign(static_cast<std::size_t>(world_), 0);
  }
  std::fill(staged_.begin(), staged_.end(), 0);
  if (plan.schedule.staging > 0) {
    for (auto& memory : contributions_)
      memory.resize(std::max(memory.size(), plan.schedule.staging * element_));
  }

  const std::size_t steps = plan.schedule.steps.size();
  int idle = 0;
  TimePoint idle_since{};
  while (true) {
    skip_idle_steps();
    if (send_.step == steps && receive_.step == steps) break;
    const bool received = receive_more();
    const bool sent = failure_.status.ok() && send_more();
    if (!failure_.status.ok()) return failure_;
    if (received || sent) {
      if (idle > 0) traffic_.waited += clock_.now() - idle_since;
      idle = 0;
      continue;
    }
    if (idle++ == 0) idle_since = clock_.now();
    if (idle <= spin_turns_) {
      transport::cpu_relax();
      continue;
    }
    if (stopped()) return {absl::CancelledError("stopped"), -1};
    const Duration left = deadline.remaining(clock_.now());
    if (left == Duration::zero()) {
      const int late = reading().peer >= 0 ? reading().peer : writing().peer;
      return {absl::DeadlineExceededError("the deadline passed"), late};
    }
    streams_.park(reading(), writing(), std::min(left, kParkLimit));
  }
  return {};
}

// Steps in which a cursor has nothing to do.
void ScheduleRunner::skip_idle_steps() {
  const std::vector<Step>& steps = plan_->schedule.steps;
  while (send_.step < steps.size() && steps[send_.step].send_to < 0) ++send_.step, send_.done = 0;
  while (receive_.step < steps.size()) {
    const Step& step = steps[receive_.step];
    if (step.receive_from >= 0) break;
    if (step.action == Action::kFold) {
      if (!may_write(step.receive.end)) break;
      fold(step);
    }
    ++receive_.step;
    receive_.done = 0;
  }
}

// ---- what may go on
// ---------------------------------------------------------------------------------------------------------------

bool ScheduleRunner::may_send(std::size_t end) const {
  const int after = plan_->send_after[send_.step];
  if (after < 0 || receive_.step > static_cast<std::size_t>(after)) return true;
  if (receive_.step < static_cast<std::size_t>(after)) return false;
  const Range& written = plan_->schedule.steps[receive_.step].receive;
  const Range& send = plan_->schedule.steps[send_.step].send;
  return !send.empty() && send.begin >= written.begin && end <= written.begin + receive_.done;
}

bool ScheduleRunner::may_write(std::size_t end) const {
  const int after = plan_->write_after[receive_.step];
  if (after < 0 || send_.step > static_cast<std::size_t>(after)) return true;
  if (send_.step < static_cast<std::size_t>(after)) return false;
  const Range& sent = plan_->schedule.steps[send_.step].send;
  return plan_->schedule.steps[receive_.step].receive.begin >= sent.begin && end <= sent.begin + send_.done;
}

std::size_t ScheduleRunner::next_elements(const Range& range, std::size_t done) const {
  return std::min(range.size() - done, kFrameBytes / element_);
}

int ScheduleRunner::channel_of(const Cursor& cursor, int peer) const {
  return static_cast<int>(cursor.frames[static_cast<std::size_t>(peer)] %
                          static_cast<std::uint32_t>(streams_.channels()));
}

Interest ScheduleRunner::reading() const {
  const std::vector<Step>& steps = plan_->schedule.steps;
  if (receive_.step == steps.size() || steps[receive_.step].receive_from < 0) return {};
  const int peer = steps[receive_.step].receive_from;
  return {peer, channel_of(receive_, peer)};
}

Interest ScheduleRunner::writing() const {
  if (send_.step == plan_->schedule.steps.size() || !send_.in_frame) return {};
  const int peer = plan_->schedule.steps[send_.step].send_to;
  return {peer, channel_of(send_, peer)};
}

// ---- sending
// ----------------------------------------------------------------------------------------------------------------------

bool ScheduleRunner::begin_send_frame(const Step& step) {
  const std::size_t elements = next_elements(step.send, send_.done);
  if (!may_send(step.send.begin + send_.done + elements)) return false;
  send_.frame_elements = elements;
  send_.moved = 0;
  send_.in_frame = true;
  const FrameHeader header{generation_, operation_, call_checksum_,
                           send_.frames[static_cast<std::size_t>(step.send_to)],
                           static_cast<std::uint32_t>(elements * element_)};
  encode(header, send_.header);
  traffic_.header_bytes_sent += kFrameHeaderBytes;
  return true;
}

bool ScheduleRunner::send_more() {
  if (send_.step == plan_->schedule.steps.size()) return false;
  const Step& step = plan_->schedule.steps[send_.step];
  if (!send_.in_frame && !begin_send_frame(step)) return false;
  const std::size_t payload = send_.frame_elements * element_;
  std::byte* const data = call_.data + (step.send.begin + send_.done) * element_;
  iovec pieces[2];
  int count = 0;
  if (send_.moved < kFrameHeaderBytes)
    pieces[count++] = {send_.header + send_.moved, kFrameHeaderBytes - send_.moved};
  const std::size_t at = send_.moved > kFrameHeaderBytes ? send_.moved - kFrameHeaderBytes : 0;
  if (payload > at) pieces[count++] = {data + at, payload - at};
  const auto moved = streams_.write_some(step.send_to, channel_of(send_, step.send_to),
                                         {pieces, static_cast<std::size_t>(count)});
  if (!moved.ok()) return fail(moved.status(), step.send_to);
  send_.moved += *moved;
  if (send_.moved == kFrameHeaderBytes + payload) {
    traffic_.bytes_sent += payload;
    ++send_.frames[static_cast<std::size_t>(step.send_to)];
    send_.in_frame = false;
    send_.done += send_.frame_elements;
    if (send_.done == step.send.size()) {
      ++send_.step;
      send_.done = 0;
    }
  }
  return *moved > 0;
}

// ---- receiving
// --------------------------------------------------------------------------------------------------------------------

bool ScheduleRunner::begin_receive_frame(const Step& step) {
  const std::size_t elements = next_elements(step.receive, receive_.done);
  // What goes straight into the array must not overwrite what is still to be sent; what is combined waits in
  // staging memory.
  if (step.action == Action::kCopy && !may_write(step.receive.begin + receive_.done + elements)) return false;
  receive_.frame_elements = elements;
  receive_.moved = 0;
  receive_.in_frame = true;
  return true;
}

bool ScheduleRunner::receive_more() {
  if (receive_.step == plan_->schedule.steps.size()) return false;
  const Step& step = plan_->schedule.steps[receive_.step];
  if (step.receive_from < 0) return false;  // a fold that waits for its array to be sent
  if (!receive_.in_frame && !begin_receive_frame(step)) return false;
  const std::size_t payload = receive_.frame_elements * element_;
  if (receive_.moved == kFrameHeaderBytes + payload) return finish_receive_frame(step);

  const auto from = static_cast<std::size_t>(step.receive_from);
  std::byte* target = arrived_.data();
  if (step.action == Action::kCopy) target = call_.data + (step.receive.begin + receive_.done) * element_;
  if (step.action == Action::kStage) target = contributions_[from].data() + staged_[from] * element_;
  iovec pieces[2];
  int count = 0;
  const bool had_header = receive_.moved >= kFrameHeaderBytes;
  if (!had_header) pieces[count++] = {receive_.header + receive_.moved, kFrameHeaderBytes - receive_.moved};
  const std::size_t at = had_header ? receive_.moved - kFrameHeaderBytes : 0;
  if (payload > at) pieces[count++] = {target + at, payload - at};
  const auto moved = streams_.read_some(step.receive_from, channel_of(receive_, step.receive_from),
                                        {pieces, static_cast<std::size_t>(count)});
  if (!moved.ok()) return fail(moved.status(), step.receive_from);
  receive_.moved += *moved;
  if (!had_header && receive_.moved >= kFrameHeaderBytes && !check_header(step)) return false;
  if (receive_.moved == kFrameHeaderBytes + payload) finish_receive_frame(step);
  return *moved > 0;
}

bool ScheduleRunner::check_header(const Step& step) {
  const int peer = step.receive_from;
  const auto header = transport::decode_frame(receive_.header);
  if (!header.ok()) return fail(header.status(), peer);
  if (header->generation != generation_) {
    return fail(absl::FailedPreconditionError(str_cat("sent a frame of generation ", header->generation.value,
                                                      ", this is ", generation_.value)),
                peer);
  }
  if (header->operation != operation_ || header->call != call_checksum_) {
    return fail(absl::InvalidArgumentError(
                    str_cat("made another call than ", describe(call_), " (collective ", operation_,
                            "); all ranks must make the same calls in the same order")),
                peer);
  }
  if (header->sequence != receive_.frames[static_cast<std::size_t>(peer)] ||
      header->length != receive_.frame_elements * element_) {
    return fail(absl::InvalidArgumentError(
                    str_cat("sent frame ", header->sequence, " of ", header->length, " bytes out of turn")),
                peer);
  }
  return true;
}

// False when the frame must wait until its range has been sent.
bool ScheduleRunner::finish_receive_frame(const Step& step) {
  const Range range{step.receive.begin + receive_.done,
                    step.receive.begin + receive_.done + receive_.frame_elements};
  if (step.action == Action::kReduce) {
    if (!may_write(range.end)) return false;
    combine(step, range, arrived_.data());
  }
  if (step.action == Action::kStage)
    staged_[static_cast<std::size_t>(step.receive_from)] += receive_.frame_elements;
  ++receive_.frames[static_cast<std::size_t>(step.receive_from)];
  receive_.in_frame = false;
  receive_.done += receive_.frame_elements;
  if (receive_.done == step.receive.size()) {
    ++receive_.step;
    receive_.done = 0;
  }
  return true;
}

void ScheduleRunner::combine(const Step& step, Range range, std::byte* arrived) {
  std::byte* const own = call_.data + range.begin * element_;
  const bool theirs_first = step.receive_from < rank_;
  const std::byte* const inputs[] = {theirs_first ? arrived : own, theirs_first ? own : arrived};
  reduce({{&own, 1}, inputs, range.size(), call_.dtype, call_.op, step.complete ? divisor_ : 1});
}

void ScheduleRunner::fold(const Step& step) {
  std::byte* const own = call_.data + step.receive.begin * element_;
  for (int r = 0; r < world_; ++r) {
    const auto index = static_cast<std::size_t>(r);
    inputs_[index] = r == rank_ ? own : contributions_[index].data();
    staged_[index] = 0;
  }
  reduce({{&own, 1}, inputs_, step.receive.size(), call_.dtype, call_.op, step.complete ? divisor_ : 1});
}

bool ScheduleRunner::fail(absl::Status status, int rank) {
  failure_ = {std::move(status), rank};
  return false;
}

}  // namespace paceline::collective
