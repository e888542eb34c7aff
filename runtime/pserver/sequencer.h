#pragma once

// Turns what the servers and workers report into the log that all servers carry out, with the policy deciding
// what counts. It knows no sockets: the first server feeds it, and sends and carries out what take() gives.
// Pure but for what the policy is. One thread.
//
// A gradient is committed once it lies on every server and its worker said what loss it had. Every turn goes
// with the version of the weights that the log has come to; a worker whose gradient still waits for its
// update when it gets a turn (policy.h, invariant 6) has it put aside by the servers.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/messages.h"
#include "runtime/pserver/policy/policy.h"

namespace paceline::pserver {

struct SequencerOptions {
  int workers = 0;
  int servers = 0;
  v1::OptimizerSpec optimizer;
};

// An entry of the log; for a turn with what its worker is told, for a snapshot with what it is of.
struct LogStep {
  LogEntry entry;
  TurnResult turn;
  SnapshotInfo snapshot;  // without optimizer_steps
};

class Sequencer {
 public:
  explicit Sequencer(const SequencerOptions& options);

  // ---- events; servers are counted from 0, the sequencer's own ----
  void ready(int server);
  // What worker 0 said. REQUIRES: once.
  void begin(std::unique_ptr<Policy> policy, const PolicyStart& start);
  void joined(int worker);
  // INVALID_ARGUMENT: the worker has no such turn, or said so before.
  absl::Status held(int worker, Unit unit, int server);
  absl::Status committed(int worker, Unit unit, const CommitMessage& commit);
  absl::Status wished(int worker, const Wishes& wishes);
  // FAILED_PRECONDITION: nothing has begun.
  absl::Status snapshot();
  void left(int worker);  // by its own will, or lost; once is enough

  // What is to be done now, in order. Valid until the next event.
  std::span<const LogStep> take();

  // Whom `worker` waits for: a rank of the group, or -1.
  int waits_for(int worker) const;
  bool finished() const { return finished_; }
  std::int64_t queue() const;  // gradients that wait for their update

 private:
  struct Kept {  // committed, neither in an update nor dropped
    Unit unit = -1;
    Version read = 0;
    double loss_sum = 0;
    std::int64_t samples = 0;
    bool aside = false;  // its worker has a later turn: the servers put it aside
  };
  struct Worker {
    bool is_there = false;
    bool is_gone = false;
    Unit turn = -1;  // the unit that it computes
    Version read = 0;
    std::uint64_t turn_number = 0;  // turns are counted
    std::vector<bool> held;         // by server
    std::optional<CommitMessage> commit;
    std::vector<Kept> kept;
    bool told_finish = false;
    TurnResult next;  // what its next turn will say of the time since the last
  };

  Worker& at(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  const Worker& at(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  void start_when_ready();
  void commit_when_whole(int worker);
  void on_wishes(int worker, const Wishes& wishes);
  void carry_out(const Effects& effects);
  void update(const Update& update);
  void give_turn(int worker, Unit unit, Unit next);
  void finish();
  LogStep& add(LogEntry::Kind kind);

  const SequencerOptions options_;
  std::unique_ptr<Policy> policy_;
  PolicyStart start_;
  std::vector<bool> ready_;
  bool started_ = false, finished_ = false;
  std::vector<Worker> workers_;
  std::vector<int> waiting_;  // joined before the start
  Version version_ = 0;
  Step step_ = 0;  // before the event under way
  std::uint64_t turns_ = 0;
  double learning_rate_ = 0;
  Wishes agreed_;
  std::vector<LogStep> steps_;  // [0, used_) are to be done; the others keep their memory
  std::size_t used_ = 0;
  bool taken_ = false;
};

}  // namespace paceline::pserver
