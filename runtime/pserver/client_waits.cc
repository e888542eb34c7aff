// Waiting for a turn, and who is to blame where none comes. Each server is asked what its log waits for: the
// sequencer knows whose gradient is missing, and every one whether worker 0 holds it up, by what it loads or
// by rows of a snapshot that it has not taken. That is nobody's fault as long as something moves.

#include <algorithm>

#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/pserver/client_impl.h"

namespace paceline::pserver {

namespace {

constexpr Duration kAskLimit = std::chrono::seconds(2);  // for the servers' words
constexpr Duration kAskAgain = std::chrono::seconds(1);  // while worker 0 holds them up

}  // namespace

bool ClientImpl::turn_is_here() const {
  return turn_.has_value() &&
         std::all_of(servers_.begin(), servers_.end(), [](const Server& each) { return each.has_weights; });
}

absl::Status ClientImpl::wait_for_turn(Deadline deadline) {
  const TimePoint from = clock_.now();
  const Duration patience = deadline.remaining(from);
  while (!turn_is_here()) {
    const absl::Status pumped = pump(deadline);
    if (!absl::IsDeadlineExceeded(pumped)) {
      PL_RETURN_IF_ERROR(pumped);
      continue;
    }
    PL_RETURN_IF_ERROR(ask_what_is_waited_for());
    const TimePoint now = clock_.now();
    const absl::StatusOr<Duration> more = wait_longer(now - from, patience);
    if (!more.ok()) return fail(more.status());
    deadline = Deadline::after(now, *more);
  }
  return absl::OkStatus();
}

// Until all have answered, the limit has passed, or the turn has come after all.
absl::Status ClientImpl::ask_what_is_waited_for() {
  for (Server& each : servers_) {
    each.waits_for.reset();
    send(each.link, FrameKind::kAsk, 0);
  }
  const Deadline limit = Deadline::after(clock_.now(), kAskLimit);
  const auto owes = [](const Server& each) { return !each.waits_for.has_value(); };
  while (!turn_is_here() && std::any_of(servers_.begin(), servers_.end(), owes)) {
    const absl::Status pumped = pump(limit);
    if (absl::IsDeadlineExceeded(pumped)) break;
    PL_RETURN_IF_ERROR(pumped);
  }
  return absl::OkStatus();
}

// For so long from now on, or who is to blame.
absl::StatusOr<Duration> ClientImpl::wait_longer(Duration waited, Duration patience) const {
  if (turn_is_here()) return patience;
  using Hold = WaitingMessage::Hold;
  Duration more = Duration::zero();
  bool held = false;
  for (const Server& each : servers_) {
    if (!each.waits_for.has_value()) continue;
    const WaitingMessage& said = *each.waits_for;
    if (said.hold == Hold::kNone) {  // what it waits for now may have begun only then
      if (said.idle >= Duration::zero()) more = std::max(more, patience - said.idle);
      continue;
    }
    if (said.idle >= options_.stall_limit) {
      const char* const what = said.hold == Hold::kLoading
                                   ? "has sent nothing of what the servers begin with"
                                   : "has taken no rows of a snapshot, which updates wait for,";
      return collective::with_faulty_rank(
          absl::DeadlineExceededError(str_cat("waited ", format_duration(waited), " for ", names_[0], ": it ",
                                              what, " for ", format_duration(said.idle))),
          0);
    }
    held = true;
  }
  if (held) return kAskAgain;
  if (more > Duration::zero()) return more;
  return late(waited);
}

absl::Status ClientImpl::late(Duration waited) const {
  const auto blame = [&](int rank, const char* why) {
    return collective::with_faulty_rank(
        absl::DeadlineExceededError(str_cat("waited ", format_duration(waited), " for ",
                                            names_[static_cast<std::size_t>(rank)], ": ", why)),
        rank);
  };
  if (turn_.has_value()) {
    for (int s = 0; s < options_.servers; ++s) {
      if (!servers_[static_cast<std::size_t>(s)].has_weights) {
        return blame(options_.workers + s, "it has not sent its weights");
      }
    }
  }
  if (!servers_[0].waits_for.has_value()) return blame(options_.workers, "it does not answer");
  const int rank = servers_[0].waits_for->rank;
  if (rank < 0 || rank >= static_cast<int>(names_.size())) {
    return blame(options_.workers, "it has no turn for this worker");
  }
  return blame(rank, rank < options_.workers ? "it has not pushed its gradient" : "it is behind the others");
}

}  // namespace paceline::pserver
