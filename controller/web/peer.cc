#include "controller/web/peer.h"

#include <arpa/inet.h>

#include <algorithm>

namespace paceline::web {

namespace {

constexpr std::size_t kNetworkBytes = 8;  // of 16
constexpr std::size_t kMappedBytes = 12;  // of 16, before an IPv4 address

std::string text_of(int family, const void* address) {
  char text[INET6_ADDRSTRLEN] = "";
  return ::inet_ntop(family, address, text, sizeof(text)) == nullptr ? "" : text;
}

}  // namespace

std::string peer_of(const sockaddr* address) {
  if (address == nullptr) return "";
  if (address->sa_family == AF_INET)
    return text_of(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  if (address->sa_family != AF_INET6) return "";
  in6_addr network = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&network)) return text_of(AF_INET, network.s6_addr + kMappedBytes);
  std::fill(network.s6_addr + kNetworkBytes, std::end(network.s6_addr), std::uint8_t{0});
  return text_of(AF_INET6, &network) + "/64";
}

}  // namespace paceline::web
