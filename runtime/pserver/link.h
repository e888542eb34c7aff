#pragma once

// Frames over one connected socket, both ways, without ever waiting. One thread. Errors name the peer and
// carry its rank (collective/fault.h): UNAVAILABLE - it is gone; INVALID_ARGUMENT, FAILED_PRECONDITION - what
// it sent is no frame, or is one of another view or version; RESOURCE_EXHAUSTED - it does not read what it
// asked for. After an error the link is of no use.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "runtime/pserver/frame.h"
#include "runtime/transport/wire.h"

namespace paceline::pserver {

class Link;

class FrameReceiver {
 public:
  virtual ~FrameReceiver() = default;
  // Where the payload of a frame that goes straight belongs, from its byte `at` on: one byte or more.
  virtual absl::StatusOr<std::span<std::byte>> place(Link& link, const FrameHeader& header,
                                                     std::uint64_t at) = 0;
  // A frame is whole. `message` is the payload of those that don't go straight, valid during the call.
  virtual absl::Status received(Link& link, const FrameHeader& header,
                                std::span<const std::byte> message) = 0;
};

class Link {
 public:
  Link() = default;
  Link(transport::Wire wire, int rank, std::string name, Generation generation);

  bool valid() const { return wire_.valid(); }
  int fd() const { return wire_.get(); }
  int rank() const { return rank_; }
  const std::string& name() const { return name_; }  // "rank 2 (ps-0)"
  // After UNAVAILABLE: it timed out or was reset. Otherwise the peer closed it.
  bool cut() const { return cut_; }

  // Queues a frame; the header's length and generation are filled in. The message is copied.
  void send(FrameHeader header, std::span<const std::byte> message = {});
  // The payload is not copied: it stays as it is until drained().
  void send_straight(FrameHeader header, std::span<const std::byte> payload);
  void send_floats(const FrameHeader& header, std::span<const float> floats) {
    send_straight(header, std::as_bytes(floats));
  }
  // Writes what the socket takes.
  absl::Status flush();
  bool drained() const { return next_ == pieces_.size(); }
  std::size_t waiting() const;  // bytes that are not written yet

  // Reads and hands on what there is, at most `budget` bytes and the rest of a record of TLS. The receiver's
  // errors end it.
  absl::Status receive(FrameReceiver& receiver, std::size_t budget);
  std::uint64_t bytes_received() const { return bytes_received_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }            // that the socket took
  std::uint64_t frames_sent() const { return frames_sent_; }          // that were queued
  std::uint64_t frames_received() const { return frames_received_; }  // whole ones
  // How often the peer was heard after something had been sent to it: round trips.
  std::uint64_t answers() const { return answers_; }

  // The error, said to be this peer's.
  absl::Status blame(const absl::Status& status) const;

  static constexpr std::size_t kMaxQueued = std::size_t{32} << 20;  // of messages, not written yet

 private:
  struct Piece {
    const std::byte* straight = nullptr;  // null: in queued_
    std::size_t at = 0;
    std::size_t size = 0;
  };
  absl::Status gone(const absl::Status& status);
  absl::Status parse(FrameReceiver& receiver);
  absl::Status hand_on(FrameReceiver& receiver);
  void queue(std::span<const std::byte> bytes);
  void queue_header(FrameHeader header, std::size_t length);
  std::size_t forget_written();  // returns how many bytes of messages are left

  transport::Wire wire_;
  int rank_ = -1;
  std::string name_;
  Generation generation_;

  std::vector<std::byte> queued_;  // headers and messages
  std::vector<Piece> pieces_;
  std::size_t next_ = 0;     // the piece that is being written, ...
  std::size_t written_ = 0;  // ... and how much of it was

  std::vector<std::byte> buffer_;  // what was read and not handed on: [begin_, end_)
  std::size_t begin_ = 0, end_ = 0;
  bool in_payload_ = false;
  FrameHeader header_;     // of the payload that is coming straight
  std::uint64_t got_ = 0;  // of them, in bytes
  std::uint64_t bytes_received_ = 0, bytes_sent_ = 0;
  std::uint64_t frames_sent_ = 0, frames_received_ = 0, answers_ = 0;
  bool asked_ = false;  // something was sent, and nothing heard since
  bool cut_ = false;
};

}  // namespace paceline::pserver
