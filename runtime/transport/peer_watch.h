#pragma once

// Watches the control connections of a view: a peer that dies is noticed at once, whatever anybody is waiting
// for.
//
// Control connections carry only notices: goodbye (this rank is done) and abort (why the view ended). A
// connection that ends without a goodbye is a death. One thread of its own, which calls `on_event`; events of
// one peer come in order, and none after the destructor has returned.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "runtime/transport/shared_group.h"
#include "runtime/transport/socket.h"
#include "runtime/transport/wire.h"

namespace paceline::transport {

inline constexpr std::size_t kNoticeBytes = 444;
inline constexpr std::size_t kNoticeText = 420;

struct Notice {
  enum class Type : std::uint8_t { kGoodbye = 5, kAbort = 6 };
  Type type = Type::kGoodbye;
  Fault fault;  // of an abort
};
std::array<std::byte, kNoticeBytes> encode(const Notice& notice);
absl::StatusOr<Notice> decode_notice(std::span<const std::byte, kNoticeBytes> bytes);

struct PeerEvent {
  enum class Kind { kLeft, kAborted, kLost };
  Kind kind = Kind::kLost;
  int rank = 0;
  Fault fault;  // kAborted: the peer's reason; kLost: how
};

class PeerWatch {
 public:
  struct Peer {
    int rank = 0;
    Wire control;
  };
  using OnEvent = std::function<void(const PeerEvent&)>;
  // The errors of making an eventfd.
  static absl::StatusOr<std::unique_ptr<PeerWatch>> make(std::vector<Peer> peers, OnEvent on_event);
  ~PeerWatch();

  // From here on `on_event` is called, perhaps before this returns: its owner keeps the watch first. Once.
  // RESOURCE_EXHAUSTED: the system starts no thread.
  absl::Status begin();
  // To all peers; never waits. Any thread.
  void send(const Notice& notice);
  // Ends the watch, without a word to the peers: those of whom nothing was read. No other call comes after
  // it, or at the same time; not from `on_event`.
  std::vector<Peer> take_peers();

 private:
  PeerWatch(std::vector<Peer> peers, OnEvent on_event, UniqueFd wake);
  struct Watched;
  void end();
  void watch(const std::stop_token& stop);
  bool listen(Watched& peer);

  std::vector<Peer> peers_;
  OnEvent on_event_;
  UniqueFd wake_;
  std::jthread thread_;
};

}  // namespace paceline::transport
