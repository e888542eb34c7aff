#include "runtime/transport/streams.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/transport/socket.h"

namespace paceline::transport {

absl::StatusOr<std::unique_ptr<Streams>> Streams::make(std::vector<std::vector<Wire>> sockets) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_status(errno, "an eventfd for the sockets of a view");
  return std::unique_ptr<Streams>(new Streams(std::move(sockets), std::move(wake)));
}

Streams::Streams(std::vector<std::vector<Wire>> sockets, UniqueFd wake)
    : sockets_(std::move(sockets)), wake_(std::move(wake)) {
  for (const auto& peer : sockets_) channels_ = std::max(channels_, static_cast<int>(peer.size()));
}

void Streams::park(Interest read, Interest write, Duration limit) {
  constexpr int kLimitMs = 100;
  if (read.peer >= 0 && wire(read.peer, read.channel).holds_more()) return;
  pollfd entries[3] = {{wake_.get(), POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLOUT, 0}};
  if (read.peer >= 0) entries[1].fd = wire(read.peer, read.channel).get();
  if (write.peer >= 0) entries[2].fd = wire(write.peer, write.channel).get();
  ::poll(entries, 3, poll_milliseconds(limit, kLimitMs));
  std::uint64_t drained;
  if (entries[0].revents != 0) (void)!::read(wake_.get(), &drained, sizeof(drained));
}

void Streams::interrupt() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));  // full means that it is set
}

const Wire& Streams::wire(int peer, int channel) const {
  const auto& of_peer = sockets_[static_cast<std::size_t>(peer)];
  PL_CHECK(static_cast<std::size_t>(channel) < of_peer.size(), "schedules use only linked peers");
  return of_peer[static_cast<std::size_t>(channel)];
}

}  // namespace paceline::transport
