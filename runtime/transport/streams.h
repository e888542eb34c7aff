#pragma once

// Byte streams to the peers of one view, several per peer ("channels"): what the schedules of collectives run
// over. One thread reads, writes and waits; interrupt() from any. Reads and writes never wait.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"
#include "runtime/transport/futex.h"

namespace paceline::transport {

struct Interest {
  int peer = -1;  // -1: none
  int channel = 0;
};

class Streams {
 public:
  virtual ~Streams() = default;
  virtual int channels() const = 0;
  // Bytes moved, 0 when the stream is full or empty for now. UNAVAILABLE when the link is broken or has
  // ended.
  virtual absl::StatusOr<std::size_t> write_some(int peer, int channel, std::span<const iovec> pieces) = 0;
  virtual absl::StatusOr<std::size_t> read_some(int peer, int channel, std::span<const iovec> pieces) = 0;
  // Parks until `read` may be readable or `write` writable, the limit has passed, or interrupt() was called
  // since the last return.
  virtual void park(Interest read, Interest write, Duration limit) = 0;
  virtual void interrupt() = 0;
};

// Over connected non-blocking sockets: sockets[rank][channel]; empty for ranks without a link. The errors of
// making an eventfd.
absl::StatusOr<std::unique_ptr<Streams>> make_socket_streams(std::vector<std::vector<UniqueFd>> sockets);

}  // namespace paceline::transport
