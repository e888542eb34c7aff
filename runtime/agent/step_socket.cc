#include "runtime/agent/step_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/file.h"
#include "base/text.h"

namespace paceline::agent {

absl::StatusOr<StepSocket> StepSocket::bind(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() < 2 || name.front() != '@' || name.size() > sizeof(address.sun_path))
    return absl::InvalidArgumentError(
        str_cat("\"", name, "\" names no socket; allowed: @ and 1 to 107 characters"));
  std::ranges::copy(name.substr(1), address.sun_path + 1);  // behind a zero: no file
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return errno_status(errno, str_cat("listen at the socket ", name));
  return StepSocket(std::move(fd));
}

std::optional<std::string_view> StepSocket::receive() {
  ssize_t got = 0;
  do {
    got = ::recv(fd_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return std::nullopt;
  return std::string_view(buffer_.data(), static_cast<std::size_t>(got));
}

}  // namespace paceline::agent
