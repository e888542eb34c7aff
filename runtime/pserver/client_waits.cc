// Waiting for a turn, and who is to blame where none comes. Each server is asked what its log waits for: the
// sequencer knows whose gradient is missing, and every one whether worker 0 holds it up, by what it loads or
// by a snapshot whose rows it has not taken. That is nobody's fault as long as something moves; nor is a
// gradient or weights that are long on their way, be it to or from this worker or another one.

#include <algorithm>

#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/pserver/client_impl.h"

namespace paceline::pserver {

namespace {

constexpr Duration kAskLimit = std::chrono::seconds(2);  // for the servers' words
constexpr Duration kAskAgain = std::chrono::seconds(1);  // while worker 0 holds them up, or something comes

}  // namespace

bool ClientImpl::turn_is_here() const {
  return turn_.has_value() &&
         std::all_of(servers_.begin(), servers_.end(), [](const Server& each) { return each.has_weights; });
}

absl::Status ClientImpl::wait_for_turn(Deadline deadline) {
  const TimePoint from = clock_.now();
  const Duration patience = deadline.remaining(from);
  for (Server& each : servers_) {
    each.silence.reset();
    each.moved_before = each.moved();
  }
  while (!turn_is_here()) {
    const absl::Status pumped = pump(deadline);
    if (!absl::IsDeadlineExceeded(pumped)) {
      PL_RETURN_IF_ERROR(pumped);
      continue;
    }
    PL_RETURN_IF_ERROR(ask_what_is_waited_for(patience));
    const TimePoint now = clock_.now();
    const absl::StatusOr<Duration> more = wait_longer(now - from, patience);
    if (!more.ok()) return fail(more.status());
    deadline = Deadline::after(now, *more);
  }
  return absl::OkStatus();
}

// Until all have answered, the limit has passed, or the turn has come after all. Who still owes an answer is
// not asked again: what it sends meanwhile, weights that its answer comes behind, shows that it lives.
absl::Status ClientImpl::ask_what_is_waited_for(Duration patience) {
  const TimePoint now = clock_.now();
  std::vector<Server*> asked;
  for (Server& each : servers_) {
    if (each.waits_for.has_value()) each.silence.reset();  // late, but it answered
    each.waits_for.reset();
    if (each.silence.has_value()) continue;
    each.moves = each.moved() != each.moved_before;
    send(each.link, FrameKind::kAsk, 0);
    asked.push_back(&each);
  }
  PL_RETURN_IF_ERROR(flush_all());  // the question itself is no sign of life
  for (Server* each : asked) each->silence.emplace(clock_, now, patience, each->moved());
  const Deadline limit = Deadline::after(now, kAskLimit);
  const auto owes = [](const Server& each) { return !each.waits_for.has_value(); };
  while (!turn_is_here() && std::any_of(servers_.begin(), servers_.end(), owes)) {
    const absl::Status pumped = pump(limit);
    if (absl::IsDeadlineExceeded(pumped)) break;
    PL_RETURN_IF_ERROR(pumped);
  }
  for (Server& each : servers_) {
    if (each.waits_for.has_value()) each.silence.reset();
    if (each.silence.has_value()) each.silence->count(each.moved());
  }
  return absl::OkStatus();
}

// For so long from now on, or who is to blame.
absl::StatusOr<Duration> ClientImpl::wait_longer(Duration waited, Duration patience) const {
  if (turn_is_here()) return patience;
  using Hold = WaitingMessage::Hold;
  Duration more = Duration::zero();
  const WaitingMessage* held = nullptr;  // by a worker 0 that has moved last there
  for (const Server& each : servers_) {
    if (!each.waits_for.has_value()) continue;
    const WaitingMessage& said = *each.waits_for;
    if (said.hold == Hold::kNone) {  // what it waits for now may have begun only then
      if (said.idle >= Duration::zero()) more = std::max(more, patience - said.idle);
    } else if (held == nullptr || said.idle < held->idle) {
      held = &said;
    }
  }
  if (held == nullptr) {
    if (more > Duration::zero()) return more;
    // Its answer comes behind weights, or this worker's question behind its gradient.
    const auto on_its_way = [](const Server& each) {
      return each.silence.has_value() && each.moves && !each.silence->expired();
    };
    if (std::any_of(servers_.begin(), servers_.end(), on_its_way)) return kAskAgain;
    return late(waited);
  }
  if (held->idle >= options_.stall_limit) {
    const char* const what = held->hold == Hold::kLoading
                                 ? "it has sent nothing of what the servers begin with for "
                                 : "it has taken nothing of a snapshot, which updates wait for, for ";
    return blame(0, waited, str_cat(what, format_duration(held->idle)));
  }
  for (std::size_t s = 0; s < servers_.size(); ++s) {
    const std::optional<ProgressDeadline>& silence = servers_[s].silence;
    if (!silence.has_value() || !silence->expired()) continue;
    return blame(options_.workers + static_cast<int>(s), waited, "it does not answer");
  }
  return kAskAgain;
}

absl::Status ClientImpl::blame(int rank, Duration waited, std::string_view why) const {
  return collective::with_faulty_rank(
      absl::DeadlineExceededError(str_cat("waited ", format_duration(waited), " for ",
                                          names_[static_cast<std::size_t>(rank)], ": ", why)),
      rank);
}

absl::Status ClientImpl::late(Duration waited) const {
  if (turn_.has_value()) {
    for (int s = 0; s < options_.servers; ++s) {
      if (!servers_[static_cast<std::size_t>(s)].has_weights) {
        return blame(options_.workers + s, waited, "it has not sent its weights");
      }
    }
  }
  if (!servers_[0].waits_for.has_value()) return blame(options_.workers, waited, "it does not answer");
  const int rank = servers_[0].waits_for->rank;
  if (rank < 0 || rank >= static_cast<int>(names_.size())) {
    return blame(options_.workers, waited, "it has no turn for this worker");
  }
  return blame(rank, waited,
               rank < options_.workers ? "it has not pushed its gradient" : "it is behind the others");
}

}  // namespace paceline::pserver
