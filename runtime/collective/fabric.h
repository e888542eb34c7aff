#pragma once

// A process's presence on the data network: it listens for peers, owns the registered memory, and makes one
// Communicator per view. Thread-safe except where Arena says otherwise; outlives the communicators that it
// made. connect() links those peers that the schedules of the view need.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "runtime/collective/communicator.h"
#include "runtime/transport/mapping.h"
#include "runtime/transport/memory.h"
#include "runtime/transport/wire.h"

namespace paceline::collective {

enum class TransportKind : std::uint8_t { kAuto = 0, kSharedMemory, kTcp };

struct FabricOptions {
  std::size_t arena_bytes = 0;         // at most; 0: transport::usual_capacity()
  std::string tcp_bind = "127.0.0.1";  // address to listen on; the port is the system's choice
  std::string tcp_advertise;           // what peers are told; empty: tcp_bind
  int sockets_per_peer = 2;
};

// Where a member's data links are reached; travels in Hello and View.
struct Address {
  std::string host_id;       // equal for processes that can share memory
  std::string local_socket;  // abstract UNIX socket name
  std::vector<std::string> tcp;
};

struct GroupMember {
  std::string member_id;  // for errors: "worker-2 (pid 4711)" is better than "rank 3"
  Address address;
};

// The membership part of a view. Members in rank order.
struct Group {
  Generation generation;
  int rank = 0;
  std::vector<GroupMember> members;
  std::array<std::uint8_t, 32> key{};  // both ends of a link prove that they know it (docs/protocol.md)
  TransportKind transport = TransportKind::kAuto;  // Auto: shared memory on one host_id, else TCP
  bool encrypted = false;    // links over TCP go inside TLS 1.3. All members must say the same
  int sockets_per_peer = 0;  // between hosts; 0: as the fabric's options say. All members must say the same
};

// What meet() gives for one peer: as many connected sockets as were asked for, and where the group shares
// memory the peer's arena, to read.
struct PeerLink {
  int rank = 0;
  std::vector<transport::Wire> sockets;
  transport::Mapping arena;
};

class Fabric {
 public:
  static absl::StatusOr<std::unique_ptr<Fabric>> create(const FabricOptions& options, const Clock& clock);
  virtual ~Fabric() = default;

  virtual const Address& address() const = 0;
  virtual transport::Arena& arena() = 0;
  // An empty one in its place, as large, for groups that are yet to meet: memory of an arena is never given
  // back by itself. Peers that have mapped the old one keep it, as it is, until they let go.
  // RESOURCE_EXHAUSTED: the old one stays. REQUIRES: nothing of this process uses it any more; no other
  // thread calls arena(), connect() or meet().
  virtual absl::Status renew_arena() = 0;

  // Connects to the other members of `group`, all of which must call it with the same generation. Links that
  // the communicator before left at its retire() go on to the same processes; one that was not retired is
  // gone by now: the peers that keep their ends wait for that. INVALID_ARGUMENT, UNAVAILABLE,
  // DEADLINE_EXCEEDED (names the missing member), PERMISSION_DENIED (a peer with another key).
  virtual absl::StatusOr<std::unique_ptr<Communicator>> connect(const Group& group, Deadline deadline) = 0;
  // Whether connect() and meet() of this group share memory. INVALID_ARGUMENT: kSharedMemory, and a member
  // is on another host.
  virtual absl::StatusOr<bool> shares_memory(const Group& group) const = 0;
  // Sockets to `peers` alone (ranks of the group, in any order), `channels` (1 to 16) to each; for those who
  // speak a protocol of their own. Every one of them meets this member too, in the same generation and with
  // as many channels. Links in the order of `peers`; errors as connect()'s.
  // kLinked: the same members will be in a view, and the links that connect() makes for it are made here and
  // now, beside these. All must say the same.
  enum class NextView : std::uint8_t { kNone, kLinked };
  virtual absl::StatusOr<std::vector<PeerLink>> meet(const Group& group, std::span<const int> peers,
                                                     int channels, Deadline deadline,
                                                     NextView next_view = NextView::kNone) = 0;
  // For good, from any thread: connect() and meet() of groups of this generation and of earlier ones, under
  // way or to come, end with CANCELLED, at once. Communicators and links stay.
  virtual void cancel_connects(Generation through) = 0;
};

// An identifier that is equal for processes of this machine that can share memory: boot id and namespaces.
std::string local_host_id();

// Ranks as threads of one process, for tests and simulations: element r is rank r's communicator.
std::vector<std::unique_ptr<Communicator>> make_in_process_group(int world_size, Generation generation,
                                                                 const Clock& clock);

}  // namespace paceline::collective
