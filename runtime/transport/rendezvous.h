#pragma once

// How the members of one view find each other: of every pair, the higher rank connects and the lower one
// accepts.
//
// A pair that both ends have kept connections of, from an earlier view, goes on with these: the higher rank
// sends a renewal by the new view's key, and the lower one answers with its own. Where only one has kept
// them, bytes of the earlier view are in them, or the renewal is another view's, they are closed, and the
// pair connects as any other does. An end that is open elsewhere, beside meet(), makes the other end wait.
//
// A listening process accepts only while it is in meet(); until then, connections wait in the system's
// backlog. Connections of a later generation than ours (a peer learned of the next view first) are kept for
// the next meet(), at most kMaxEarly of them. At most kMaxHalfOpen strangers are heard at a time, each for
// kHearing, and others wait in the backlog meanwhile; whatever is not a proper handshake ends with its
// connection and a line in `refused`. One thread at a time, but for cancel(). Every wait ends at the
// deadline.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/socket.h"
#include "runtime/transport/wire.h"

namespace paceline::transport {

struct RendezvousPeer {
  int rank = 0;
  std::string name;                    // for messages
  std::vector<std::string> addresses;  // a local socket's name, or host:port
};

struct RendezvousPlan {
  Generation generation;
  int rank = 0;
  int world = 0;
  Key key{};
  bool local = false;      // over UNIX sockets, else TCP
  bool encrypted = false;  // those over TCP: TLS begins behind the verdict
  int channels = 1;        // connections per pair: 0 is for control
  std::vector<RendezvousPeer> peers;
  std::vector<int> descriptors_for_all;     // passed to every peer (UNIX sockets); the caller's
  std::vector<int> descriptors_for_higher;  // to higher ranks, after those
};

struct MetPeer {
  int rank = 0;
  std::vector<Wire> channels;
  std::vector<UniqueFd> descriptors = {};
  bool kept = false;  // the channels are an earlier view's
};

class Rendezvous {
 public:
  // The errors of making an eventfd.
  static absl::StatusOr<std::unique_ptr<Rendezvous>> make(UniqueFd tcp_listener, UniqueFd local_listener,
                                                          const Clock& clock);

  // UNAVAILABLE (a member does not listen, or is in a later generation), DEADLINE_EXCEEDED (names who did not
  // come), PERMISSION_DENIED (a member with another key), FAILED_PRECONDITION (a member knows another world),
  // RESOURCE_EXHAUSTED (this process gets no descriptors or memory for connections), CANCELLED.
  // `kept`: connections of an earlier view to peers of this one, with nothing on its way in them; those with
  // another number of channels, and to nobody of the plan, end here.
  absl::StatusOr<std::vector<MetPeer>> meet(const RendezvousPlan& plan, Deadline deadline,
                                            std::vector<MetPeer> kept = {});

  // From any thread, for good: meetings of this generation and of earlier ones, under way or to come, end
  // with CANCELLED.
  void cancel(Generation through);

  // Connections that were turned away, and why: the last kMaxRefusals.
  const std::vector<std::string>& refused() const { return refused_; }

  static constexpr std::size_t kMaxHalfOpen = 64;
  static constexpr std::size_t kMaxEarly = 256;
  static constexpr std::size_t kMaxRefusals = 32;
  static constexpr Duration kHearing = std::chrono::seconds(2);
  static constexpr Duration kDial = std::chrono::seconds(60);  // for a connection, before anybody answers

 private:
  Rendezvous(UniqueFd tcp_listener, UniqueFd local_listener, UniqueFd cancelled, const Clock& clock);
  struct HalfOpen;
  struct Early {
    UniqueFd fd;
    Message hello;
  };
  absl::Status call(const RendezvousPlan& plan, const RendezvousPeer& peer, MetPeer& met, Deadline deadline);
  absl::StatusOr<Wire> call_once(const RendezvousPlan& plan, const RendezvousPeer& peer, int channel,
                                 MetPeer& met, Deadline deadline);
  absl::Status renew(const RendezvousPlan& plan, std::vector<MetPeer> kept, std::vector<MetPeer>& met,
                     Deadline deadline);
  // False where the connection is not as the view before should have left it.
  static bool send_renewal(const RendezvousPlan& plan, const MetPeer& kept);
  // ABORTED: the other end has not kept it, or for another view.
  absl::Status take_renewal(const RendezvousPlan& plan, MetPeer& kept, Deadline deadline);
  absl::Status receive(const RendezvousPlan& plan, std::vector<MetPeer>& met, Deadline deadline);
  // As many as there are and have room. RESOURCE_EXHAUSTED: short of descriptors or memory.
  absl::Status accept_new(int listener, std::vector<HalfOpen>& open);
  absl::Status late(const RendezvousPlan& plan, int missing) const;
  absl::StatusOr<std::vector<MetPeer>> meet_peers(const RendezvousPlan& plan, Deadline deadline,
                                                  std::vector<MetPeer> kept);
  // False when the connection is over (accepted, refused, kept for later).
  bool advance(const RendezvousPlan& plan, HalfOpen& stranger, std::vector<MetPeer>& met);
  bool shake_hands(HalfOpen& stranger, std::vector<MetPeer>& met);
  bool on_hello(const RendezvousPlan& plan, HalfOpen& stranger, const Message& hello);
  bool on_proof(const RendezvousPlan& plan, HalfOpen& stranger, const Message& proof,
                std::vector<MetPeer>& met);
  void refuse(const RendezvousPlan& plan, HalfOpen& stranger, Refusal refusal);
  void note(std::string text);

  UniqueFd tcp_listener_, local_listener_;
  const UniqueFd cancelled_;  // an eventfd: readable once the meeting under way is cancelled
  const Clock& clock_;
  std::vector<Early> early_;
  std::vector<std::string> refused_;
  bool wrong_key_seen_ = false;
  struct Cancelling {
    Generation meeting;  // under way; 0: none
    Generation through;
  };
  Guarded<Cancelling> cancelling_;
};

}  // namespace paceline::transport
