#include "runtime/collective/fabric.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>

#include "base/file.h"
#include "base/guarded.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/status.h"
#include "runtime/collective/arguments.h"
#include "runtime/collective/shared_communicator.h"
#include "runtime/collective/stream_communicator.h"
#include "runtime/transport/mapping.h"
#include "runtime/transport/peer_watch.h"
#include "runtime/transport/rendezvous.h"
#include "runtime/transport/socket.h"

namespace paceline::collective {

namespace {

using transport::Mapping;
using transport::MetPeer;
using transport::Rendezvous;
using transport::RendezvousPlan;

// A look at a socket is a system call and takes longer than one at memory; parking costs the sender a wake-up
// as well: measured.
constexpr int kTurnsPerCall = 8;

absl::Status check_group(const Group& group, const Address& mine) {
  const int world = static_cast<int>(group.members.size());
  if (world < 1 || world > kMaxGroupMembers) {
    return absl::InvalidArgumentError(str_cat("a group of ", world, " members; 1 to ", kMaxGroupMembers));
  }
  if (group.rank < 0 || group.rank >= world) {
    return absl::InvalidArgumentError(str_cat("rank ", group.rank, " of ", world, " members"));
  }
  if (group.generation.value == 0) return absl::InvalidArgumentError("a group of generation 0");
  if (group.sockets_per_peer < 0 || group.sockets_per_peer > 16) {
    return absl::InvalidArgumentError(
        str_cat("sockets_per_peer ", group.sockets_per_peer, "; 1 to 16, or 0"));
  }
  const Address& listed = group.members[static_cast<std::size_t>(group.rank)].address;
  if (listed.local_socket != mine.local_socket) {
    return absl::InvalidArgumentError(
        str_cat("rank ", group.rank, " of the group has another process's address"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> sharing(const Group& group) {
  if (group.transport == TransportKind::kTcp) return false;
  const std::string& host = group.members[0].address.host_id;
  for (std::size_t r = 0; r < group.members.size(); ++r) {
    if (group.members[r].address.host_id == host) continue;
    if (group.transport == TransportKind::kAuto) return false;
    return absl::InvalidArgumentError(
        str_cat(name_rank(static_cast<int>(r), group.members[r].member_id),
                " is on another host than rank 0; transport SharedMemory needs one host"));
  }
  return true;
}

RendezvousPlan plan_for(const Group& group, bool local, int channels) {
  RendezvousPlan plan;
  plan.generation = group.generation;
  plan.rank = group.rank;
  plan.world = static_cast<int>(group.members.size());
  plan.key = group.key;
  plan.local = local;
  plan.encrypted = group.encrypted;
  plan.channels = channels;
  for (int r = 0; r < plan.world; ++r) {
    if (r == plan.rank) continue;
    const GroupMember& member = group.members[static_cast<std::size_t>(r)];
    plan.peers.push_back(
        {r, member.member_id,
         local ? std::vector<std::string>{member.address.local_socket} : member.address.tcp});
  }
  return plan;
}

// What a shared-memory communicator reads and writes besides the arena of its own process.
struct SharedMappings {
  Mapping page;
  std::vector<Mapping> arenas;  // by rank; empty for this rank
};

absl::StatusOr<std::unique_ptr<transport::Arena>> new_arena(const FabricOptions& options) {
  return transport::Arena::create(options.arena_bytes > 0 ? options.arena_bytes
                                                          : transport::usual_capacity());
}

class FabricOfSockets final : public Fabric {
 public:
  FabricOfSockets(const FabricOptions& options, const Clock& clock, Address address,
                  std::unique_ptr<transport::Arena> arena, std::unique_ptr<Rendezvous> meeting)
      : options_(options),
        clock_(clock),
        address_(std::move(address)),
        arena_(std::move(arena)),
        meeting_(std::move(meeting)) {}

  const Address& address() const override { return address_; }
  transport::Arena& arena() override { return *arena_; }
  absl::Status renew_arena() override {
    PL_ASSIGN_OR_RETURN(arena_, new_arena(options_));
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Communicator>> connect(const Group& group, Deadline deadline) override {
    PL_RETURN_IF_ERROR(check_group(group, address_));
    PL_ASSIGN_OR_RETURN(const bool shared, sharing(group));
    return shared ? connect_shared(group, deadline) : connect_tcp(group, deadline);
  }
  absl::StatusOr<bool> shares_memory(const Group& group) const override { return sharing(group); }
  absl::StatusOr<std::vector<PeerLink>> meet(const Group& group, std::span<const int> peers, int channels,
                                             Deadline deadline, NextView next_view) override;
  void cancel_connects(Generation through) override { meeting_->cancel(through); }

 private:
  absl::StatusOr<std::unique_ptr<Communicator>> connect_shared(const Group& group, Deadline deadline);
  absl::StatusOr<std::unique_ptr<Communicator>> connect_tcp(const Group& group, Deadline deadline);
  // For a view, by what is kept of its members' links.
  absl::StatusOr<std::vector<MetPeer>> meet_members(const Group& group, bool shared,
                                                    const RendezvousPlan& plan, Deadline deadline) {
    const std::lock_guard one_meeting_at_a_time(meet_mutex_);
    return meeting_->meet(plan, deadline, take_kept(group, shared));
  }
  int data_links(const Group& group) const {
    return group.sockets_per_peer > 0 ? group.sockets_per_peer : options_.sockets_per_peer;
  }
  // Connections between two members of a view.
  int channels_of(const Group& group, bool shared) const { return shared ? 1 : 1 + data_links(group); }
  // The links of these members, by their ranks; those of others end.
  std::vector<MetPeer> take_kept(const Group& group, bool shared);
  void keep(const std::vector<std::string>& processes, bool shared, std::vector<MetPeer> links);
  std::function<void(std::vector<MetPeer>)> keeper(const Group& group, bool shared);

  const FabricOptions options_;
  const Clock& clock_;
  const Address address_;
  std::unique_ptr<transport::Arena> arena_;
  const std::unique_ptr<Rendezvous> meeting_;
  std::mutex meet_mutex_;
  // A link that waits for the next view. There is one for a process that lives, and all are taken or end with
  // the next view that is connected.
  struct Kept {
    std::string process;  // its local socket, which is nobody else's
    bool shared = false;
    MetPeer link;
  };
  Guarded<std::vector<Kept>> kept_;
};

bool has_ended(int socket) {
  pollfd entry{socket, POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) != 0;
}

std::vector<std::string> processes_of(const Group& group) {
  std::vector<std::string> processes;
  for (const GroupMember& member : group.members) processes.push_back(member.address.local_socket);
  return processes;
}

std::function<void(std::vector<MetPeer>)> FabricOfSockets::keeper(const Group& group, bool shared) {
  return [this, processes = processes_of(group), shared](std::vector<MetPeer> links) {
    keep(processes, shared, std::move(links));
  };
}

void FabricOfSockets::keep(const std::vector<std::string>& processes, bool shared,
                           std::vector<MetPeer> links) {
  auto kept = kept_.lock();
  std::erase_if(*kept, [](const Kept& each) { return has_ended(each.link.channels[0].get()); });
  for (MetPeer& link : links) {
    const std::string& process = processes[static_cast<std::size_t>(link.rank)];
    std::erase_if(*kept, [&](const Kept& each) { return each.process == process; });
    kept->push_back({process, shared, std::move(link)});
  }
}

std::vector<MetPeer> FabricOfSockets::take_kept(const Group& group, bool shared) {
  std::vector<Kept> kept = std::exchange(*kept_.lock(), {});
  const std::vector<std::string> processes = processes_of(group);
  std::vector<MetPeer> links;
  for (Kept& each : kept) {
    const auto member = std::ranges::find(processes, each.process);
    if (member == processes.end() || each.shared != shared) continue;
    links.push_back(std::move(each.link));
    links.back().rank = static_cast<int>(member - processes.begin());
  }
  return links;
}

int kept_of(const std::vector<MetPeer>& met) {
  return static_cast<int>(std::ranges::count_if(met, &MetPeer::kept));
}

std::vector<std::string> names_of(const Group& group) {
  std::vector<std::string> names;
  for (const GroupMember& member : group.members) names.push_back(member.member_id);
  return names;
}

absl::StatusOr<std::unique_ptr<Communicator>> FabricOfSockets::connect_shared(const Group& group,
                                                                              Deadline deadline) {
  const int world = static_cast<int>(group.members.size());
  RendezvousPlan plan = plan_for(group, /*local=*/true, /*channels=*/1);
  plan.descriptors_for_all = {arena_->fd()};
  const std::size_t seen_of_arena = arena_->mapped();
  auto mappings = std::make_shared<SharedMappings>();
  UniqueFd page;
  if (group.rank == 0) {
    PL_ASSIGN_OR_RETURN(
        page, transport::make_shared_memory("paceline-group", transport::SharedGroup::bytes_needed(world)));
    PL_ASSIGN_OR_RETURN(mappings->page, Mapping::of(page, Mapping::Access::kReadWrite));
    transport::SharedGroup::format(mappings->page.memory(), world);
    plan.descriptors_for_higher = {page.get()};
  }
  PL_ASSIGN_OR_RETURN(std::vector<MetPeer> met, meet_members(group, true, plan, deadline));

  mappings->arenas.resize(static_cast<std::size_t>(world));
  std::vector<PeerMemory> peers(static_cast<std::size_t>(world));
  std::vector<transport::PeerWatch::Peer> watched;
  for (MetPeer& peer : met) {
    const auto index = static_cast<std::size_t>(peer.rank);
    const std::size_t expected = peer.rank == 0 ? 2 : 1;
    if (peer.descriptors.size() != expected) {
      return absl::FailedPreconditionError(str_cat(name_rank(peer.rank, group.members[index].member_id),
                                                   " passed ", peer.descriptors.size(), " descriptors, not ",
                                                   expected));
    }
    PL_ASSIGN_OR_RETURN(mappings->arenas[index], Mapping::of(peer.descriptors[0], Mapping::Access::kRead));
    peers[index] = {mappings->arenas[index].memory().data(), mappings->arenas[index].memory().size()};
    if (peer.rank == 0) {
      PL_ASSIGN_OR_RETURN(mappings->page, Mapping::of(peer.descriptors[1], Mapping::Access::kReadWrite));
    }
    watched.push_back({peer.rank, std::move(peer.channels[0])});
  }
  PL_ASSIGN_OR_RETURN(transport::SharedGroup shared,
                      transport::SharedGroup::attach(mappings->page.memory(), world, group.rank,
                                                     transport::SpinPolicy::for_members(world)));
  SharedWiring wiring{shared,           group.generation, names_of(group),
                      std::move(peers), arena_.get(),     std::move(mappings),
                      seen_of_arena,    kept_of(met),     keeper(group, true)};
  auto communicator = std::make_unique<SharedCommunicator>(std::move(wiring), clock_);
  PL_RETURN_IF_ERROR(communicator->watch(std::move(watched)));
  return communicator;
}

absl::StatusOr<std::unique_ptr<Communicator>> FabricOfSockets::connect_tcp(const Group& group,
                                                                           Deadline deadline) {
  const int world = static_cast<int>(group.members.size());
  RendezvousPlan plan = plan_for(group, /*local=*/false, channels_of(group, false));
  const std::vector<int> partners = partners_of(group.rank, world);
  std::erase_if(plan.peers, [&](const transport::RendezvousPeer& peer) {
    return !std::binary_search(partners.begin(), partners.end(), peer.rank);
  });
  PL_ASSIGN_OR_RETURN(std::vector<MetPeer> met, meet_members(group, false, plan, deadline));

  StreamWiring wiring;
  wiring.kept_links = kept_of(met);
  wiring.keep = keeper(group, false);
  wiring.rank = group.rank;
  wiring.world = world;
  wiring.generation = group.generation;
  wiring.names = names_of(group);
  std::vector<transport::PeerWatch::Peer> controls;
  std::vector<std::vector<transport::Wire>> sockets(static_cast<std::size_t>(world));
  for (MetPeer& peer : met) {
    transport::end_when_unanswered(peer.channels[0].get());
    controls.push_back({peer.rank, std::move(peer.channels[0])});
    auto& data = sockets[static_cast<std::size_t>(peer.rank)];
    for (std::size_t c = 1; c < peer.channels.size(); ++c) data.push_back(std::move(peer.channels[c]));
  }
  PL_ASSIGN_OR_RETURN(wiring.streams, transport::Streams::make(std::move(sockets)));
  const auto& host = group.members[static_cast<std::size_t>(group.rank)].address.host_id;
  const auto neighbours =
      std::count_if(group.members.begin(), group.members.end(),
                    [&](const GroupMember& member) { return member.address.host_id == host; });
  wiring.spin_turns = transport::SpinPolicy::for_members(static_cast<int>(neighbours)).turns / kTurnsPerCall;
  auto communicator = std::make_unique<StreamCommunicator>(std::move(wiring), clock_);
  PL_RETURN_IF_ERROR(communicator->watch(std::move(controls)));
  return communicator;
}

absl::StatusOr<std::vector<PeerLink>> FabricOfSockets::meet(const Group& group, std::span<const int> peers,
                                                            int channels, Deadline deadline,
                                                            NextView next_view) {
  PL_RETURN_IF_ERROR(check_group(group, address_));
  if (channels < 1 || channels > 16) {
    return absl::InvalidArgumentError(str_cat(channels, " channels to a peer; 1 to 16"));
  }
  PL_ASSIGN_OR_RETURN(const bool shared, sharing(group));
  const int more = channels_of(group, shared);
  const bool both = next_view == NextView::kLinked && channels + more <= transport::kMaxChannels;
  RendezvousPlan plan = plan_for(group, shared, both ? channels + more : channels);
  std::erase_if(plan.peers, [&](const transport::RendezvousPeer& peer) {
    return std::find(peers.begin(), peers.end(), peer.rank) == peers.end();
  });
  if (plan.peers.size() != peers.size()) {
    return absl::InvalidArgumentError("a peer is no other member of the group, or is listed twice");
  }
  if (shared) plan.descriptors_for_all = {arena_->fd()};
  // No view is connected before what is kept for it is there.
  const std::lock_guard one_meeting_at_a_time(meet_mutex_);
  PL_ASSIGN_OR_RETURN(std::vector<MetPeer> met, meeting_->meet(plan, deadline));
  std::vector<PeerLink> links(peers.size());
  std::vector<MetPeer> kept;
  for (MetPeer& peer : met) {
    const auto at = std::find(peers.begin(), peers.end(), peer.rank) - peers.begin();
    PeerLink& link = links[static_cast<std::size_t>(at)];
    link.rank = peer.rank;
    const auto own = peer.channels.begin() + channels;
    MetPeer& later = kept.emplace_back(MetPeer{peer.rank, {}});
    later.channels.assign(std::move_iterator(own), std::move_iterator(peer.channels.end()));
    peer.channels.erase(own, peer.channels.end());
    link.sockets = std::move(peer.channels);
    if (!shared) continue;
    if (peer.descriptors.size() != 1) {
      const std::string& name = group.members[static_cast<std::size_t>(peer.rank)].member_id;
      return absl::FailedPreconditionError(
          str_cat(name_rank(peer.rank, name), " passed ", peer.descriptors.size(), " descriptors, not 1"));
    }
    PL_ASSIGN_OR_RETURN(link.arena, Mapping::of(peer.descriptors[0], Mapping::Access::kRead));
  }
  if (both) keep(processes_of(group), shared, std::move(kept));
  return links;
}

std::string random_name() {
  return str_cat("paceline-", hex(random_bytes(16)));
}

std::string host_and_port(const std::string& host, std::uint16_t port) {
  return host.find(':') == std::string::npos ? str_cat(host, ":", port) : str_cat("[", host, "]:", port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fabric>> Fabric::create(const FabricOptions& options, const Clock& clock) {
  if (options.sockets_per_peer < 1 || options.sockets_per_peer > 16) {
    return absl::InvalidArgumentError(str_cat("sockets_per_peer ", options.sockets_per_peer, "; 1 to 16"));
  }
  PL_ASSIGN_OR_RETURN(auto arena, new_arena(options));
  PL_ASSIGN_OR_RETURN(transport::TcpListener tcp, transport::listen_tcp(options.tcp_bind));
  Address address;
  address.host_id = local_host_id();
  address.local_socket = random_name();
  address.tcp = {
      host_and_port(options.tcp_advertise.empty() ? options.tcp_bind : options.tcp_advertise, tcp.port)};
  PL_ASSIGN_OR_RETURN(UniqueFd local, transport::listen_local(address.local_socket));
  PL_ASSIGN_OR_RETURN(auto meeting, Rendezvous::make(std::move(tcp.fd), std::move(local), clock));
  return std::make_unique<FabricOfSockets>(options, clock, std::move(address), std::move(arena),
                                           std::move(meeting));
}

std::string local_host_id() {
  // Processes can share memory when they run under one kernel and see one abstract socket namespace (that of
  // the network).
  std::string id = "?";
  if (auto boot = read_file("/proc/sys/kernel/random/boot_id", 256); boot.ok()) {
    id = *boot;
    id.erase(std::remove(id.begin(), id.end(), '\n'), id.end());
  }
  struct stat network {};
  if (::stat("/proc/self/ns/net", &network) == 0) id = str_cat(id, "/net:", network.st_ino);
  return id;
}

}  // namespace paceline::collective
