#pragma once

// Sockets as data links use them: non-blocking, close-on-exec. Functions without state.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace paceline::transport {

inline constexpr int kMaxPassedFds = 2;

struct TcpListener {
  UniqueFd fd;
  std::uint16_t port = 0;
};
// Listens on `host`, at a port of the system's choice. UNAVAILABLE.
absl::StatusOr<TcpListener> listen_tcp(const std::string& host);
// Listens on an abstract UNIX stream socket: it has no file, and ends with its last descriptor.
absl::StatusOr<UniqueFd> listen_local(const std::string& name);

// A wait ends with CANCELLED as soon as `cancel_fd` (-1: there is none) is readable.
inline constexpr int kNoCancel = -1;

// Connected, or UNAVAILABLE (nobody listens, no route), DEADLINE_EXCEEDED or CANCELLED.
absl::StatusOr<UniqueFd> connect_tcp(const std::string& host_and_port, const Clock& clock, Deadline deadline,
                                     int cancel_fd = kNoCancel);
absl::StatusOr<UniqueFd> connect_local(const std::string& name, const Clock& clock, Deadline deadline,
                                       int cancel_fd = kNoCancel);

// The next connection, an invalid descriptor when there is none. RESOURCE_EXHAUSTED: this process gets no
// descriptor or memory for it, and it still waits.
absl::StatusOr<UniqueFd> accept_one(int listener);

// Options of every TCP socket: no delay, and while it is idle an end within seconds when the other host is
// gone.
void tune_tcp(int fd);
// Of one that carries short messages alone: that end also where something is on its way. For data it would be
// the end of a peer that lives and reads nothing for so long, because it computes or saves.
void end_when_unanswered(int fd);

// UNAVAILABLE, for what a connection has failed with while `doing` something.
absl::Status connection_error(std::string_view doing, int error);
// Such a failure: the connection timed out or was reset, and the peer did not close it.
bool was_cut(const absl::Status& status);

// Sends all of a short message with descriptors beside it (UNIX sockets). UNAVAILABLE when the other end is
// gone or does not read.
absl::Status send_short(int fd, std::span<const std::byte> bytes, std::span<const int> descriptors = {});

// Reads a message of fixed length piece by piece.
class MessageReader {
 public:
  explicit MessageReader(std::size_t length) : buffer_(length) {}
  // Reads what there is. True when the message is whole; UNAVAILABLE at the connection's end;
  // RESOURCE_EXHAUSTED where this process gets no descriptors for those that came with it.
  absl::StatusOr<bool> read_some(int fd);
  // The same by a function that reads what there is, 0 bytes where that is nothing.
  using Read = std::function<absl::StatusOr<std::size_t>(std::span<std::byte> to)>;
  absl::StatusOr<bool> read_some(const Read& read);
  std::span<const std::byte> bytes() const { return buffer_; }
  std::vector<UniqueFd> take_descriptors() { return std::move(descriptors_); }
  bool begun() const { return have_ > 0; }
  void restart() { have_ = 0; }

 private:
  std::vector<std::byte> buffer_;
  std::size_t have_ = 0;
  std::vector<UniqueFd> descriptors_;
};

// Waits for `events` (poll(2)) on one descriptor. DEADLINE_EXCEEDED, CANCELLED, or poll's errors.
absl::Status wait_for(int fd, short events, const Clock& clock, Deadline deadline, int cancel_fd = kNoCancel);

// poll(2)'s milliseconds: rounded up, at least 0, at most `limit_ms`.
int poll_milliseconds(Duration remaining, int limit_ms);

}  // namespace paceline::transport
