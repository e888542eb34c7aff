#include "controller/web/listen_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace paceline::web {

namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

absl::StatusOr<Address> parse_address(const std::string& text) {
  const auto wrong = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        str_cat("address \"", text, "\": ", why, "; it must be IP:PORT or :PORT, such as 0.0.0.0:8080"));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong("there is no port");
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || stop != end) return wrong("the port is no number from 0 to 65535");
  std::string host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  Address address;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (host.empty() || inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof(*v4);
  } else if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof(*v6);
  } else {
    return wrong("the host is no IP address");
  }
  return address;
}

}  // namespace

absl::StatusOr<ListenSocket> listen_on(const std::string& text) {
  PL_ASSIGN_OR_RETURN(const Address address, parse_address(text));
  const auto failed = [&](const char* what) {
    return absl::UnavailableError(str_cat("address \"", text, "\": ", what, ": ", std::strerror(errno)));
  };
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return failed("no socket");
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) {
    return failed("it can't be bound");
  }
  if (::listen(fd.get(), SOMAXCONN) != 0) return failed("it can't be listened on");
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    return failed("its port is not known");
  const int port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                     : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return ListenSocket{std::move(fd), port};
}

}  // namespace paceline::web
