#include "runtime/transport/streams.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/transport/socket.h"

namespace paceline::transport {

namespace {

msghdr message_of(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return message;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Streams>> Streams::make(std::vector<std::vector<UniqueFd>> sockets) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_status(errno, "an eventfd for the sockets of a view");
  return std::unique_ptr<Streams>(new Streams(std::move(sockets), std::move(wake)));
}

Streams::Streams(std::vector<std::vector<UniqueFd>> sockets, UniqueFd wake)
    : sockets_(std::move(sockets)), wake_(std::move(wake)) {
  for (const auto& peer : sockets_) channels_ = std::max(channels_, static_cast<int>(peer.size()));
}

absl::StatusOr<std::size_t> Streams::write_some(int peer, int channel, std::span<const iovec> pieces) {
  msghdr message = message_of(pieces);
  const ssize_t sent = ::sendmsg(socket(peer, channel), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return 0;
  return absl::UnavailableError(str_cat("sending: ", std::strerror(errno)));
}

absl::StatusOr<std::size_t> Streams::read_some(int peer, int channel, std::span<const iovec> pieces) {
  msghdr message = message_of(pieces);
  const ssize_t got = ::recvmsg(socket(peer, channel), &message, MSG_DONTWAIT);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) return absl::UnavailableError("the connection ended");
  if (errno == EAGAIN || errno == EINTR) return 0;
  return absl::UnavailableError(str_cat("receiving: ", std::strerror(errno)));
}

void Streams::park(Interest read, Interest write, Duration limit) {
  constexpr int kLimitMs = 100;
  pollfd entries[3] = {{wake_.get(), POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLOUT, 0}};
  if (read.peer >= 0) entries[1].fd = socket(read.peer, read.channel);
  if (write.peer >= 0) entries[2].fd = socket(write.peer, write.channel);
  ::poll(entries, 3, poll_milliseconds(limit, kLimitMs));
  std::uint64_t drained;
  if (entries[0].revents != 0) (void)!::read(wake_.get(), &drained, sizeof(drained));
}

void Streams::interrupt() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));  // full means that it is set
}

int Streams::socket(int peer, int channel) const {
  const auto& of_peer = sockets_[static_cast<std::size_t>(peer)];
  PL_CHECK(static_cast<std::size_t>(channel) < of_peer.size(), "schedules use only linked peers");
  return of_peer[static_cast<std::size_t>(channel)].get();
}

}  // namespace paceline::transport
