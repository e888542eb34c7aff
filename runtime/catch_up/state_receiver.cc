#include "runtime/catch_up/state_receiver.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace paceline::catch_up {

namespace {

constexpr int kPollMs = 100;

}  // namespace

StateReceiver::StateReceiver(collective::Fabric& fabric, const Clock& clock, collective::Group group,
                             LearnedState state, OnNews on_news)
    : fabric_(fabric),
      clock_(clock),
      group_(std::move(group)),
      state_(std::move(state)),
      on_news_(std::move(on_news)),
      thread_([this](const std::stop_token& stop) {
        absl::StatusOr<Learned> result = run(stop);
        const absl::Status status = result.status();
        sources_.clear();
        {
          auto shared = shared_.lock();
          shared->over = true;
          shared->result = std::move(result);
        }
        if (!status.ok() && !stop.stop_requested()) on_news_(status);
      }) {}

StateReceiver::~StateReceiver() {
  cancel();
}

void StateReceiver::cancel() {
  thread_.request_stop();
  if (!shared_.lock()->met) fabric_.cancel_connects(group_.generation);
}

absl::StatusOr<Learned> StateReceiver::finish(Deadline deadline) {
  auto shared = shared_.lock_when([](const Shared& s) { return s.over; }, deadline.remaining(clock_.now()));
  if (!shared->over) return absl::DeadlineExceededError("the state is not here in time");
  return shared->result;
}

absl::StatusOr<Learned> StateReceiver::run(const std::stop_token& stop) {
  PL_RETURN_IF_ERROR(meet());
  shared_.lock()->met = true;
  bool caught_up = false;
  std::vector<pollfd> entries(sources_.size());
  while (!std::ranges::all_of(sources_, &Source::ended)) {
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      entries[i] = {sources_[i].ended ? -1 : sources_[i].socket.get(), POLLIN, 0};
    }
    const bool waits = std::ranges::none_of(sources_, [](const Source& s) { return s.socket.holds_more(); });
    ::poll(entries.data(), entries.size(), waits ? kPollMs : 0);
    if (stop.stop_requested()) return absl::CancelledError("nobody waits for the state any more");
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (entries[i].revents == 0 && !sources_[i].socket.holds_more()) continue;
      const absl::Status status = read(sources_[i]);
      if (!status.ok()) return about(sources_[i], status);
    }
    if (!caught_up && has_all()) {
      caught_up = true;
      on_news_(absl::OkStatus());
    }
  }
  const Update& first = sources_.front().at;
  for (const Source& source : sources_) {
    if (source.at.step != first.step || source.at.optimizer_steps != first.optimizer_steps)
      return about(source, absl::InvalidArgumentError(str_cat("it ended after step ", source.at.step,
                                                              ", another one after ", first.step)));
  }
  return Learned{first.step, first.optimizer_steps};
}

absl::Status StateReceiver::about(const Source& source, const absl::Status& status) const {
  return with_context(status, group_.members[static_cast<std::size_t>(source.rank)].member_id);
}

absl::Status StateReceiver::meet() {
  std::vector<int> ranks;
  for (std::size_t rank = 1; rank < group_.members.size(); ++rank) ranks.push_back(static_cast<int>(rank));
  if (ranks.empty()) return absl::InvalidArgumentError("a newcomer without sources");
  PL_ASSIGN_OR_RETURN(auto links, fabric_.meet(group_, ranks, 1, Deadline::after(clock_.now(), kMeetLimit),
                                               collective::Fabric::NextView::kLinked));
  for (collective::PeerLink& link : links) {
    Source& source = sources_.emplace_back();
    source.rank = link.rank;
    source.socket = std::move(link.sockets.at(0));
    source.slice = slice_of(state_.weights.size(), ranks.size(), static_cast<std::size_t>(link.rank) - 1);
    source.buffer.resize(kHeaderBytes + kMostFloats * sizeof(float));
  }
  return absl::OkStatus();
}

bool StateReceiver::has_all() const {
  return std::ranges::all_of(sources_, [](const Source& s) { return s.have == s.slice.size(); });
}

// It reads as much as there is of one frame, so that every source has its turn.
absl::Status StateReceiver::read(Source& source) {
  while (true) {
    const iovec rest{source.buffer.data() + source.filled, source.wanted - source.filled};
    const auto got = source.socket.read_some({&rest, 1});
    if (!got.ok()) return with_context(got.status(), "before all of the state was here");
    if (*got == 0) return absl::OkStatus();
    shared_.lock()->bytes += *got;
    source.filled += *got;
    if (source.filled < source.wanted) continue;
    if (!source.frame) {
      PL_ASSIGN_OR_RETURN(source.frame, decode(std::span(source.buffer).first<kHeaderBytes>(), vectors()));
      source.wanted += floats_behind(*source.frame, vectors()) * sizeof(float);
      if (source.filled < source.wanted) continue;
    }
    const absl::Status taken = take(source);
    source.frame.reset();
    source.filled = 0;
    source.wanted = kHeaderBytes;
    return taken;
  }
}

absl::Status StateReceiver::take(Source& source) {
  const Frame& frame = *source.frame;
  const std::span<const float> floats(reinterpret_cast<const float*>(source.buffer.data() + kHeaderBytes),
                                      floats_behind(frame, vectors()));
  switch (frame.kind) {
    case FrameKind::kGradient:
      return take_gradient(source, frame, floats);
    case FrameKind::kState:
      return take_state(source, frame, floats);
    case FrameKind::kEnd:
      return take_end(source, frame);
    case FrameKind::kRefusal:
      return absl::FailedPreconditionError("its state is on its device");
  }
  return absl::OkStatus();
}

absl::Status StateReceiver::take_gradient(Source& source, const Frame& frame, std::span<const float> floats) {
  const bool next = frame.update.step == source.at.step + 1;
  const bool in_order = frame.begin == source.slice.begin + source.covered;
  if (!next || !in_order || frame.count == 0 || source.covered + frame.count > source.have) {
    return absl::InvalidArgumentError(str_cat("a gradient of step ", frame.update.step, " for elements ",
                                              frame.begin, " and ", frame.count, " behind step ",
                                              source.at.step));
  }
  state_.apply(frame.update, frame.begin, floats);
  source.covered += frame.count;
  if (source.covered < source.have) return absl::OkStatus();
  source.at = frame.update;
  source.covered = 0;
  return absl::OkStatus();
}

absl::Status StateReceiver::take_state(Source& source, const Frame& frame, std::span<const float> floats) {
  const bool same_step = source.have == 0 || (source.covered == 0 && frame.update.step == source.at.step);
  const bool in_order = frame.begin == source.slice.begin + source.have;
  if (!same_step || !in_order || source.have + frame.count > source.slice.size()) {
    return absl::InvalidArgumentError(str_cat("a state of step ", frame.update.step, " for elements ",
                                              frame.begin, " and ", frame.count, " behind step ",
                                              source.at.step));
  }
  std::ranges::copy(floats.first(frame.count),
                    state_.weights.begin() + static_cast<std::ptrdiff_t>(frame.begin));
  for (std::size_t v = 1; v < vectors(); ++v) {
    std::ranges::copy(floats.subspan(v * frame.count, frame.count),
                      state_.optimizer[v - 1].begin() + static_cast<std::ptrdiff_t>(frame.begin));
  }
  source.have += frame.count;
  source.at = frame.update;
  return absl::OkStatus();
}

absl::Status StateReceiver::take_end(Source& source, const Frame& frame) {
  if (source.slice.size() == 0) source.at = frame.update;
  if (source.have != source.slice.size()) {
    return absl::UnavailableError(str_cat("the view ended when ", source.have, " of ", source.slice.size(),
                                          " elements of its part were here"));
  }
  if (source.at != frame.update || source.covered != 0)
    return absl::InvalidArgumentError(
        str_cat("its part is of step ", source.at.step, ", and it ended after ", frame.update.step));
  source.ended = true;
  return absl::OkStatus();
}

}  // namespace paceline::catch_up
