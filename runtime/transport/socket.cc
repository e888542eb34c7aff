#include "runtime/transport/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "base/file.h"
#include "base/status.h"

namespace paceline::transport {

namespace {

constexpr int kBacklog = 1024;
constexpr int kUnansweredMs = 10'000;
constexpr char kCut[] = "paceline.dev/cut";
constexpr int kKeepIdleSeconds = 5, kKeepIntervalSeconds = 2, kKeepProbes = 3;

absl::Status system_error(std::string_view what) {
  return absl::UnavailableError(str_cat(what, ": ", std::strerror(errno)));
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> resolve(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) return absl::UnavailableError(str_cat("address ", host, ": ", ::gai_strerror(error)));
  return Addresses(list);
}

absl::StatusOr<sockaddr_un> local_address(const std::string& name, socklen_t* length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() > sizeof(address.sun_path) - 1) {
    return absl::InvalidArgumentError(str_cat("local socket name of ", name.size(), " bytes"));
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a leading zero byte: abstract
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

absl::Status finish_connect(int fd, int result, const std::string& to, const Clock& clock, Deadline deadline,
                            int cancel_fd) {
  if (result == 0) return absl::OkStatus();
  if (errno != EINPROGRESS) return system_error(str_cat("connecting to ", to));
  PL_RETURN_IF_ERROR(
      with_context(wait_for(fd, POLLOUT, clock, deadline, cancel_fd), str_cat("connecting to ", to)));
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  return error == 0 ? absl::OkStatus() : system_error(str_cat("connecting to ", to));
}

}  // namespace

absl::StatusOr<TcpListener> listen_tcp(const std::string& host) {
  PL_ASSIGN_OR_RETURN(const Addresses addresses, resolve(host, "0", AI_PASSIVE));
  TcpListener listener;
  listener.fd.reset(::socket(addresses->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.fd.valid()) return errno_status(errno, "a socket");
  if (::bind(listener.fd.get(), addresses->ai_addr, addresses->ai_addrlen) != 0)
    return system_error(str_cat("binding to ", host));
  if (::listen(listener.fd.get(), kBacklog) != 0) return system_error(str_cat("listening on ", host));
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (::getsockname(listener.fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    return system_error("getsockname");
  listener.port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                                    : reinterpret_cast<sockaddr_in&>(bound).sin_port);
  return listener;
}

absl::StatusOr<UniqueFd> listen_local(const std::string& name) {
  socklen_t length = 0;
  PL_ASSIGN_OR_RETURN(const sockaddr_un address, local_address(name, &length));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_status(errno, "a socket");
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return system_error("binding a local socket");
  if (::listen(fd.get(), kBacklog) != 0) return system_error("listening on a local socket");
  return fd;
}

absl::StatusOr<UniqueFd> connect_tcp(const std::string& host_and_port, const Clock& clock, Deadline deadline,
                                     int cancel_fd) {
  const std::size_t colon = host_and_port.rfind(':');
  if (colon == std::string::npos)
    return absl::InvalidArgumentError(str_cat("address without a port: ", host_and_port));
  std::string host = host_and_port.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  PL_ASSIGN_OR_RETURN(const Addresses addresses, resolve(host, host_and_port.substr(colon + 1), 0));
  UniqueFd fd(::socket(addresses->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_status(errno, "a socket");
  tune_tcp(fd.get());  // before the connection: the window's scale depends on the buffer
  const int result = ::connect(fd.get(), addresses->ai_addr, addresses->ai_addrlen);
  PL_RETURN_IF_ERROR(finish_connect(fd.get(), result, host_and_port, clock, deadline, cancel_fd));
  return fd;
}

absl::StatusOr<UniqueFd> connect_local(const std::string& name, const Clock& clock, Deadline deadline,
                                       int cancel_fd) {
  socklen_t length = 0;
  PL_ASSIGN_OR_RETURN(const sockaddr_un address, local_address(name, &length));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_status(errno, "a socket");
  const int result = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length);
  PL_RETURN_IF_ERROR(finish_connect(fd.get(), result, name, clock, deadline, cancel_fd));
  return fd;
}

absl::StatusOr<UniqueFd> accept_one(int listener) {
  UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd.valid()) return fd;
  switch (errno) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
    case EPERM:  // a firewall's word, and what the network says of a connection that is gone by now
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ETIMEDOUT:
      return fd;
    default:
      return errno_status(errno, "taking in a connection");
  }
}

void tune_tcp(int fd) {
  // Buffers are the system's to size: asking for a size ends its tuning, and the limit may be far too low.
  // Each is a wish: a UNIX socket or a smaller system limit only makes the link slower.
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A peer whose host is gone is noticed also where nothing is on its way: after two hours by default.
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepIdleSeconds, sizeof(kKeepIdleSeconds));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepIntervalSeconds, sizeof(kKeepIntervalSeconds));
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kKeepProbes, sizeof(kKeepProbes));
}

void end_when_unanswered(int fd) {
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnansweredMs, sizeof(kUnansweredMs));
}

absl::Status connection_error(std::string_view doing, int error) {
  absl::Status status = absl::UnavailableError(str_cat(doing, ": ", std::strerror(error)));
  if (error != EPIPE) status.SetPayload(kCut, absl::Cord());
  return status;
}

bool was_cut(const absl::Status& status) {
  return status.GetPayload(kCut).has_value();
}

absl::Status send_short(int fd, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  PL_CHECK(descriptors.size() <= kMaxPassedFds, "descriptors per message are bounded");
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxPassedFds)] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  if (sent >= 0)
    return absl::UnavailableError("the other end does not read");  // its buffer holds many such messages
  return system_error("send");
}

absl::StatusOr<bool> MessageReader::read_some(int fd) {
  while (have_ < buffer_.size()) {
    iovec piece{buffer_.data() + have_, buffer_.size() - have_};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxPassedFds)];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got < 0) return system_error("receive");
    const bool cut = (message.msg_flags & MSG_CTRUNC) != 0;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int received;
        std::memcpy(&received, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        UniqueFd owned(received);
        if (descriptors_.size() < kMaxPassedFds) descriptors_.push_back(std::move(owned));
      }
    }
    if (cut) return absl::ResourceExhaustedError("no room for the descriptors that a peer passed");
    if (got == 0) return absl::UnavailableError("the connection ended");
    have_ += static_cast<std::size_t>(got);
  }
  return true;
}

absl::StatusOr<bool> MessageReader::read_some(const Read& read) {
  while (have_ < buffer_.size()) {
    PL_ASSIGN_OR_RETURN(const std::size_t got, read(std::span(buffer_).subspan(have_)));
    if (got == 0) return false;
    have_ += got;
  }
  return true;
}

absl::Status wait_for(int fd, short events, const Clock& clock, Deadline deadline, int cancel_fd) {
  while (true) {
    const Duration left = deadline.remaining(clock.now());
    if (left == Duration::zero()) return absl::DeadlineExceededError("the deadline passed");
    pollfd entries[] = {{fd, events, 0}, {cancel_fd, POLLIN, 0}};  // poll ignores a negative descriptor
    const int ready = ::poll(entries, 2, poll_milliseconds(left, 1000));
    if (ready < 0 && errno != EINTR) return errno_status(errno, "waiting for a socket");
    if (ready <= 0) continue;
    return entries[1].revents != 0 ? absl::CancelledError("the wait was cancelled") : absl::OkStatus();
  }
}

int poll_milliseconds(Duration remaining, int limit_ms) {
  constexpr std::int64_t kNsPerMs = 1'000'000;
  const std::int64_t ms = (std::max<std::int64_t>(remaining.count(), 0) + kNsPerMs - 1) / kNsPerMs;
  return static_cast<int>(std::min<std::int64_t>(ms, limit_ms));
}

}  // namespace paceline::transport
