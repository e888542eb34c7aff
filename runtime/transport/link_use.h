#pragma once

// How a link to a peer is used, as the kernel tells of its TCP sockets (TCP_INFO of linux/tcp.h).

#include <cstdint>
#include <optional>
#include <span>

#include "runtime/transport/wire.h"

namespace paceline::transport {

struct LinkUse {
  // These are since the sockets were connected.
  std::uint64_t bytes = 0;                         // that the peer's kernel has acknowledged
  std::uint64_t segments = 0, segments_again = 0;  // that were sent, and those that were sent once more
  // Bytes a second of all sockets, while they had something to send: the newest that was measured, or a later
  // and higher one of too few bytes to measure by (draft-cheng-iccrg-delivery-rate-estimation). 0: none yet.
  double rate = 0;
  bool operator==(const LinkUse&) const = default;
};

// The sum of all sockets. Nothing: they are no TCP sockets, or the kernel is older than 4.9.
std::optional<LinkUse> link_use(std::span<const Wire> sockets);

}  // namespace paceline::transport
