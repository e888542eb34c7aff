#pragma once

// The client of a connection, as limits count it: an IPv4 address, or the /64 of an IPv6 one, within which a
// client has any address that it likes. Pure.

#include <string>

struct sockaddr;

namespace paceline::web {

// "10.0.0.7", also of ::ffff:10.0.0.7; "2001:db8:0:1::/64". Empty: null, or no address of IP.
std::string peer_of(const sockaddr* address);

}  // namespace paceline::web
