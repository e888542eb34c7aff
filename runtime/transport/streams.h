#pragma once

// Byte streams to the peers of one view, several sockets per peer ("channels"): what the schedules of
// collectives run over. One thread reads, writes and waits; interrupt() from any. Reads and writes never
// wait.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "runtime/transport/wire.h"

namespace paceline::transport {

struct Interest {
  int peer = -1;  // -1: none
  int channel = 0;
};

class Streams {
 public:
  // sockets[rank][channel], connected and non-blocking; empty for ranks without a link. The errors of making
  // an eventfd.
  static absl::StatusOr<std::unique_ptr<Streams>> make(std::vector<std::vector<Wire>> sockets);

  int channels() const { return channels_; }
  // These are Wire's.
  absl::StatusOr<std::size_t> write_some(int peer, int channel, std::span<const iovec> pieces) {
    return wire(peer, channel).write_some(pieces);
  }
  absl::StatusOr<std::size_t> read_some(int peer, int channel, std::span<const iovec> pieces) {
    return wire(peer, channel).read_some(pieces);
  }
  // Parks until `read` may be readable or `write` writable, the limit has passed, or interrupt() was called
  // since the last return.
  void park(Interest read, Interest write, Duration limit);
  void interrupt();
  // The sockets are of any thread, as long as nobody takes them. Empty for ranks without a link.
  std::span<const Wire> sockets_to(int peer) const { return sockets_[static_cast<std::size_t>(peer)]; }
  // Only interrupt() is called afterwards.
  std::vector<std::vector<Wire>> take_sockets() { return std::move(sockets_); }

 private:
  Streams(std::vector<std::vector<Wire>> sockets, UniqueFd wake);
  const Wire& wire(int peer, int channel) const;

  std::vector<std::vector<Wire>> sockets_;
  UniqueFd wake_;
  int channels_ = 0;
};

}  // namespace paceline::transport
