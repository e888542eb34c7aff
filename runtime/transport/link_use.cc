#include "runtime/transport/link_use.h"

#include <linux/tcp.h>
#include <sys/socket.h>

#include <cstddef>

namespace paceline::transport {

namespace {

constexpr int kTcp = 6;  // IPPROTO_TCP; netinet/in.h and linux/tcp.h don't go together everywhere

}  // namespace

std::optional<LinkUse> link_use(std::span<const Wire> sockets) {
  LinkUse use;
  for (const Wire& socket : sockets) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    constexpr std::size_t kNeeded = offsetof(tcp_info, tcpi_delivery_rate) + sizeof(info.tcpi_delivery_rate);
    if (::getsockopt(socket.get(), kTcp, TCP_INFO, &info, &size) != 0 || size < kNeeded) return std::nullopt;
    use.bytes += info.tcpi_bytes_acked;
    use.rate += static_cast<double>(info.tcpi_delivery_rate);
    use.segments += info.tcpi_segs_out;
    use.segments_again += info.tcpi_total_retrans;
  }
  if (sockets.empty()) return std::nullopt;
  return use;
}

}  // namespace paceline::transport
