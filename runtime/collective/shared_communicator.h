#pragma once

// The communicator of ranks that share memory: processes of one host, or threads of one process.
//
// Small messages: every rank copies its data to its staging memory, one phase, every rank reduces all inputs
// itself. Large ones: every rank reduces its block from all ranks' data, a phase, and copies the other
// blocks. Data that is registered on all ranks is read where it lies; other data goes through staging memory,
// in chunks. Peers' memory is only ever read, so that a rank that was frozen and wakes up in the middle of a
// dead view can harm nobody. Every element is folded in rank order, 0 to N-1, whatever the path; fp16 and
// bf16 in fp32, rounded once. Threads and errors: communicator.h.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/collective/call_communicator.h"
#include "runtime/collective/closing.h"
#include "runtime/transport/memory.h"
#include "runtime/transport/peer_watch.h"
#include "runtime/transport/rendezvous.h"
#include "runtime/transport/shared_group.h"

namespace paceline::collective {

// Another rank's registered memory, as this process sees it.
struct PeerMemory {
  const std::byte* base = nullptr;
  std::size_t bytes = 0;
};

struct SharedWiring {
  transport::SharedGroup group;
  Generation generation;
  std::vector<std::string> names;  // member of each rank, for messages; may be empty texts
  std::vector<PeerMemory> peers;   // by rank; empty when all ranks are threads of this process
  const transport::Arena* arena = nullptr;
  std::shared_ptr<void> keep_alive;  // what the memory above belongs to
  std::size_t seen_of_arena = 0;     // bytes from its begin that all peers have mapped
  int kept_links = 0;
  std::function<void(std::vector<transport::MetPeer>)> keep = nullptr;  // what retire() leaves
};

class SharedCommunicator final : public CallCommunicator {
 public:
  SharedCommunicator(SharedWiring wiring, const Clock& clock);
  ~SharedCommunicator() override;

  int rank() const override { return wiring_.group.rank(); }
  int world_size() const override { return wiring_.group.world_size(); }
  Generation generation() const override { return wiring_.generation; }
  void close(absl::Status reason) override;
  void retire() override;
  absl::Status closed() const override;
  Counters counters() const override;

  // Watches the peers' processes: when one ends without having left, the group ends. Once, before the first
  // call.
  absl::Status watch(std::vector<transport::PeerWatch::Peer> peers);

 private:
  void peer_lost(int rank, const std::string& how);
  struct Operation {  // one call under way
    Call call;
    Deadline deadline;
    Duration waited{};
    bool announced = false;  // this rank's publication was checked against the others'
    std::size_t element = dtype_bytes(call.dtype);
    int divisor = 1;
  };
  absl::Status run(const Call& call, Deadline deadline) override;
  absl::Status dispatch(Operation& operation);
  // The ways (shared_paths.cc).
  absl::Status one_shot(Operation& operation);
  absl::Status direct(Operation& operation);
  absl::Status staged_all_reduce(Operation& operation);
  absl::Status staged_reduce_scatter(Operation& operation);
  absl::Status staged_all_gather(Operation& operation);
  absl::Status staged_broadcast(Operation& operation);

  void publish(Operation& operation, int parity);
  absl::Status check_publications(const Operation& operation, int parity) const;
  absl::Status phase(Operation& operation);
  absl::Status first_phase(Operation& operation, int parity);
  absl::Status find_data(const Operation& operation, int parity);
  absl::Status failure(const Operation& operation, transport::SharedGroup::Outcome outcome) const;
  absl::Status adopt_fault() const;

  SharedWiring wiring_;
  const Clock& clock_;
  mutable Closing closing_;
  // Scratch of the calling thread, one per rank.
  std::vector<const std::byte*> inputs_;  // what is reduced next
  std::vector<const std::byte*> data_;    // registered memory, of an operation that uses it

  std::atomic<std::uint64_t> bytes_sent_{0}, operations_{0};
  std::atomic<std::int64_t> wait_ns_{0}, transfer_ns_{0};
  std::unique_ptr<transport::PeerWatch> watch_;  // the last member: its thread uses the others
};

}  // namespace paceline::collective
