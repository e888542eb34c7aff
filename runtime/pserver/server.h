#pragma once

// A parameter server of one view: it holds its slices of the weights and of the optimiser's state, carries
// out the log, and answers the workers. The first server is also the sequencer: it hosts the policy, and
// writes the log (docs/parameter-servers.md).
//
// It needs neither model nor data: worker 0 says how long the weights are and what is in them. Memory: its
// share of weights and optimiser state, plus one gradient per worker over TCP, plus the copy of a snapshot
// until it was taken, plus one more buffer of weights for each worker that still reads an older version; its
// share of the sparse tables, plus the largest pull and push of each worker (row_inbox.h).
// Threads: run() has its own; close(), closed(), stats() and snapshot_bytes() may be called by any. After the
// first update nothing is allocated, but for snapshots, the policy's answers, and tables that grow. Errors as
// the client's. A worker that is lost is told to the policy and to on_lost; a server that is lost ends the
// run.

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/collective/fabric.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/policy/policy.h"

namespace paceline::pserver {

// A worker copies so many in about 50 us, several times what it takes to tell it that they are coming.
inline constexpr std::size_t kAheadFloats = std::size_t{1} << 17;

struct ServerOptions {
  ClientOptions shape;  // the same as the workers'
  v1::OptimizerSpec optimizer;
  double delay_compensation = 0;  // lambda of DC-ASGD; 0: off
  std::int64_t units_per_step = 1;
  ModeHolds holds;  // holds_of(mode)
  // Called once, by the first server, with what worker 0 said; REQUIRED there. Its error closes the view.
  std::function<absl::StatusOr<std::unique_ptr<Policy>>(const PolicyStart&)> policy;
  // Sharing memory, workers read weights while they are made, where a server has at least so many and each
  // member a core of its own (else they would take it from the server). 0: always.
  std::size_t ahead_floats = kAheadFloats;
  std::uint64_t max_kept_bytes = kMaxKeptBytes;  // of rows that worker 0 has yet to take; tests have less
  // In the server's thread: a worker that is gone without having said so. May be null.
  std::function<void(int rank, const absl::Status& why)> on_lost;
};

class Server {
 public:
  // Meets the workers, and the other servers where it must. The fabric's errors of connect();
  // INVALID_ARGUMENT: the group or the optimiser does not fit.
  static absl::StatusOr<std::unique_ptr<Server>> connect(collective::Fabric& fabric,
                                                         const collective::Group& group,
                                                         const ServerOptions& options, const Clock& clock,
                                                         Deadline deadline);
  virtual ~Server() = default;

  // Serves until all workers have left: OK, or UNAVAILABLE where all are lost and none said goodbye.
  // `start`: until when worker 0 must have said what to begin with, DEADLINE_EXCEEDED: whenever something of
  // it comes, that is as far off again as it was at the call. Other errors close
  // it: UNAVAILABLE - another server is lost; OUT_OF_RANGE - the gradient's norm is not finite;
  // INVALID_ARGUMENT - another server's frames; RESOURCE_EXHAUSTED - the arena is too small for what the
  // dense weights may need, told before the first turn, or no memory for a new row; ABORTED. A
  // worker whose frames make no sense is told why, and lost.
  virtual absl::Status run(Deadline start) = 0;

  // Of rows it says what the last call asked for, and after run() what there was in the end.
  virtual v1::ServerStats stats() const = 0;

  // What snapshots have moved between worker 0 and this server: it rises while one is being taken. Any
  // thread.
  virtual std::uint64_t snapshot_bytes() const = 0;

  // As the client's: ends run() within a millisecond, or as soon as the block that is being summed is done.
  virtual void close(absl::Status reason) = 0;
  virtual absl::Status closed() const = 0;
};

}  // namespace paceline::pserver
