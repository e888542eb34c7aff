// A client's links: what is written and read, how long it waits, and what becomes of errors.

#include <poll.h>

#include <algorithm>

#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/pserver/client_impl.h"
#include "runtime/transport/socket.h"

namespace paceline::pserver {

namespace {}  // namespace

// A server whose connection broke may have said why before: another server, say, was lost.
absl::Status ClientImpl::lost(absl::Status error) {
  if (absl::IsUnavailable(error)) {
    for (Server& each : servers_) (void)each.link.receive(*this, kReadBudget);
    if (!told_.ok()) error = told_;
  }
  return fail(error);
}

absl::Status ClientImpl::flush_all() {
  for (Server& each : servers_) {
    if (each.link.drained()) continue;
    if (const absl::Status flushed = each.link.flush(); !flushed.ok()) return lost(flushed);
  }
  return absl::OkStatus();
}

std::uint64_t ClientImpl::bytes_written() const {
  std::uint64_t bytes = 0;
  for (const Server& each : servers_) bytes += each.link.bytes_sent();
  return bytes;
}

absl::Status ClientImpl::flush(Deadline deadline) {
  ProgressDeadline progress(clock_, deadline);
  for (;;) {
    if (close_.is_closed()) return close_.reason();
    PL_RETURN_IF_ERROR(flush_all());
    polled_.clear();
    Server* busy = nullptr;
    for (Server& each : servers_) {
      if (each.link.drained()) continue;
      if (busy == nullptr) busy = &each;
      polled_.push_back({each.link.fd(), POLLOUT, 0});
    }
    if (busy == nullptr) return absl::OkStatus();
    polled_.push_back({close_.fd(), POLLIN, 0});
    const std::size_t copies = poll_copies();
    progress.count(bytes_written());
    if (progress.expired()) {
      return fail(busy->link.blame(absl::DeadlineExceededError(
          str_cat("has taken nothing of what was sent to it for ", format_duration(progress.idle())))));
    }
    ::poll(polled_.data(), polled_.size(), transport::poll_milliseconds(progress.left(), kLookAroundMs));
    if (close_.is_closed()) return close_.reason();
    PL_RETURN_IF_ERROR(find_cut(copies));
  }
}

absl::Status ClientImpl::drain(const char* what, ProgressDeadline& progress) {
  PL_RETURN_IF_ERROR(flush_all());
  const auto busy = [](const Server& each) { return !each.link.drained(); };
  for (auto at = servers_.begin();
       (at = std::find_if(servers_.begin(), servers_.end(), busy)) != servers_.end();) {
    progress.count(bytes_written());
    const absl::Status pumped = pump(progress.deadline());
    if (!absl::IsDeadlineExceeded(pumped)) {
      PL_RETURN_IF_ERROR(pumped);
      continue;
    }
    progress.count(bytes_written());
    if (!progress.expired()) continue;
    return fail(at->link.blame(absl::DeadlineExceededError(
        str_cat("has taken nothing of ", what, " for ", format_duration(progress.idle())))));
  }
  return absl::OkStatus();
}

absl::Status ClientImpl::pump(Deadline deadline) {
  if (close_.is_closed()) return close_.reason();
  if (interrupted()) return interrupt_.reason();
  PL_RETURN_IF_ERROR(flush_all());
  polled_.clear();
  for (Server& each : servers_) {
    polled_.push_back(
        {each.link.fd(), static_cast<short>(each.link.drained() ? POLLIN : POLLIN | POLLOUT), 0});
  }
  polled_.push_back({close_.fd(), POLLIN, 0});
  polled_.push_back({interrupt_.fd(), POLLIN, 0});
  const std::size_t copies = poll_copies();
  const TimePoint from = clock_.now();
  const Duration left = deadline.remaining(from);
  int found = 0;
  while (found == 0 && read_ahead()) found = ::poll(polled_.data(), polled_.size(), 0);
  for (int turn = 0; turn <= spin_calls_ && found == 0; ++turn) {
    const int limit = turn < spin_calls_ ? 0 : transport::poll_milliseconds(left, kLookAroundMs);
    found = ::poll(polled_.data(), polled_.size(), limit);
  }
  if (!bytes_came_) times_.wait += clock_.now() - from;
  if (close_.is_closed()) return close_.reason();
  if (interrupted()) return interrupt_.reason();
  if (found <= 0) {
    return deadline.expired(clock_.now()) ? absl::DeadlineExceededError("late") : absl::OkStatus();
  }
  for (std::size_t s = 0; s < servers_.size(); ++s) {
    if ((polled_[s].revents & ~POLLOUT) == 0) continue;
    const absl::Status received = servers_[s].link.receive(*this, kReadBudget);
    if (!received.ok()) return lost(received);
  }
  PL_RETURN_IF_ERROR(find_cut(copies));
  return flush_all();
}

// What comes on them is another thread's to read. That they are idle most of the time makes them those that
// end where a server's host has vanished (docs/protocol.md, "Who connects").
std::size_t ClientImpl::poll_copies() {
  const std::size_t first = polled_.size();
  for (const Server& each : servers_) polled_.push_back({each.copies.fd(), 0, 0});
  return first;
}

absl::Status ClientImpl::find_cut(std::size_t first) {
  for (std::size_t s = 0; s < servers_.size(); ++s) {
    if ((polled_[first + s].revents & (POLLERR | POLLHUP)) == 0) continue;
    return lost(servers_[s].link.blame(
        absl::UnavailableError("is gone: its connection for snapshots timed out or was reset")));
  }
  return absl::OkStatus();
}

}  // namespace paceline::pserver
