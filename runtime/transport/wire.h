#pragma once

// One connection of a data link: a socket whose bytes go as they are, or inside TLS. Nothing waits. Any
// thread may read while another one writes.

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/transport/socket.h"
#include "runtime/transport/tls_session.h"

namespace paceline::transport {

class Wire {
 public:
  Wire() = default;
  Wire(UniqueFd fd) : fd_(std::move(fd)) {}  // as they are
  // REQUIRES: the session's socket is `fd`, and its handshake is done.
  Wire(UniqueFd fd, std::unique_ptr<TlsSession> tls) : fd_(std::move(fd)), tls_(std::move(tls)) {}

  int get() const { return fd_.get(); }  // to poll, and for its options
  bool valid() const { return fd_.valid(); }
  bool is_encrypted() const { return tls_ != nullptr; }
  void reset() {
    tls_.reset();
    fd_.reset();
  }

  // Bytes moved, 0 when the socket is full or empty for now. UNAVAILABLE: the connection has ended, or its
  // bytes are not what was sent. Inside TLS a write of which not all was taken is made again with at least
  // the same bytes.
  absl::StatusOr<std::size_t> write_some(std::span<const iovec> pieces) const;
  absl::StatusOr<std::size_t> read_some(std::span<const iovec> pieces) const;
  // Bytes to read of which poll(2) does not tell: the rest of a record of TLS.
  std::size_t held() const { return tls_ != nullptr ? tls_->held() : 0; }
  bool holds_more() const { return held() > 0; }

  // These do what socket.h does for a socket. Descriptors travel beside bytes as they are alone.
  absl::Status send_short(std::span<const std::byte> bytes, std::span<const int> descriptors = {}) const;
  absl::StatusOr<bool> read_some(MessageReader& reader) const;

 private:
  UniqueFd fd_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace paceline::transport
