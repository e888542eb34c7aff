#include "runtime/transport/wire.h"

#include <sys/socket.h>

#include <cerrno>

#include "base/check.h"
#include "base/status.h"

namespace paceline::transport {

namespace {

msghdr message_of(std::span<const iovec> pieces) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return message;
}

}  // namespace

absl::StatusOr<std::size_t> Wire::write_some(std::span<const iovec> pieces) const {
  if (tls_ != nullptr) return tls_->write_some(pieces);
  const msghdr message = message_of(pieces);
  const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return 0;
  return connection_error("sending", errno);
}

absl::StatusOr<std::size_t> Wire::read_some(std::span<const iovec> pieces) const {
  if (tls_ != nullptr) return tls_->read_some(pieces);
  msghdr message = message_of(pieces);
  const ssize_t got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) return absl::UnavailableError("the connection ended");
  if (errno == EAGAIN || errno == EINTR) return 0;
  return connection_error("receiving", errno);
}

absl::Status Wire::send_short(std::span<const std::byte> bytes, std::span<const int> descriptors) const {
  if (tls_ == nullptr) return transport::send_short(fd_.get(), bytes, descriptors);
  PL_CHECK(descriptors.empty(), "no descriptors between hosts");
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  PL_ASSIGN_OR_RETURN(const std::size_t sent, tls_->write_some({&piece, 1}));
  return sent == bytes.size() ? absl::OkStatus() : absl::UnavailableError("the other end does not read");
}

absl::StatusOr<bool> Wire::read_some(MessageReader& reader) const {
  if (tls_ == nullptr) return reader.read_some(fd_.get());
  return reader.read_some([this](std::span<std::byte> to) {
    const iovec piece{to.data(), to.size()};
    return tls_->read_some({&piece, 1});
  });
}

}  // namespace paceline::transport
