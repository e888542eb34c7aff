#pragma once

// The communicator of ranks that are joined by byte streams (TCP): runs schedules, chosen from tuning.h.
// Threads and errors: communicator.h.

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "runtime/collective/call_communicator.h"
#include "runtime/collective/closing.h"
#include "runtime/collective/schedule_runner.h"
#include "runtime/transport/peer_watch.h"
#include "runtime/transport/rendezvous.h"

namespace paceline::collective {

struct StreamWiring {
  int rank = 0;
  int world = 1;
  Generation generation;
  std::vector<std::string> names;  // by rank
  std::unique_ptr<transport::Streams> streams;
  int spin_turns = 0;
  int kept_links = 0;
  std::function<void(std::vector<transport::MetPeer>)> keep;  // what retire() leaves
};

class StreamCommunicator final : public CallCommunicator {
 public:
  StreamCommunicator(StreamWiring wiring, const Clock& clock);
  ~StreamCommunicator() override;
  // Before the first call, where there are peers: by their control connections.
  absl::Status watch(std::vector<transport::PeerWatch::Peer> peers);

  int rank() const override { return wiring_.rank; }
  int world_size() const override { return wiring_.world; }
  Generation generation() const override { return wiring_.generation; }
  void close(absl::Status reason) override;
  void retire() override;
  absl::Status closed() const override { return closing_.reason(); }
  Counters counters() const override;
  std::vector<Link> links() const override;

 private:
  // Plans are kept for the next call of the same shape: kMaxPlans of them.
  struct CachedPlan {
    std::uint64_t fingerprint;
    std::size_t count;
    Plan plan;
  };
  static constexpr std::size_t kMaxPlans = 32;

  absl::Status run(const Call& call, Deadline deadline) override;
  const Plan& plan_for(const Call& call);
  Schedule schedule_for(const Call& call) const;
  absl::Status explain(const Call& call, const RunFailure& failure);
  void on_event(const transport::PeerEvent& event);
  void close_blaming(absl::Status reason, int blamed);
  std::string name(int rank) const { return name_rank(rank, wiring_.names[static_cast<std::size_t>(rank)]); }

  StreamWiring wiring_;
  const Clock& clock_;
  Closing closing_;
  Guarded<std::vector<bool>> left_;  // by rank: it said goodbye
  ScheduleRunner runner_;
  std::list<CachedPlan> plans_;  // the calling thread's

  std::atomic<std::uint64_t> bytes_sent_{0}, header_bytes_sent_{0}, operations_{0};
  std::atomic<std::int64_t> wait_ns_{0}, transfer_ns_{0};
  std::unique_ptr<transport::PeerWatch> watch_;  // the last member: its thread uses the others
};

}  // namespace paceline::collective
