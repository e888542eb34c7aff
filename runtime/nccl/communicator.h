#pragma once

// Collectives among GPUs by NCCL: a Communicator (collective/communicator.h) whose `data` are addresses of
// the GPU of its context.
//
// Idea: a thread of its own makes all of the communicator's calls of NCCL, none of which is waited for
// without a deadline: callers hand it operations and wait for what it tells, so that they return in time even
// where a call of NCCL never does. The communicator is non-blocking, and asked how it goes on.
// Every collective is first agreed on over the host's communicator of the same view (24 bytes a rank), then
// enqueued on the communicator's own stream, which goes before the others of its GPU: what all ranks wait for
// does not wait for the kernels of one. So a peer that is late is named, calls that differ are refused
// before they could hang GPUs, no kernel waits on a GPU for a member whose step has not come so far, and the
// end of one member, which NCCL does not tell, reaches all: each sees its host's communicator end, and aborts
// or stops what is under way (NCCL wants all ranks of a node to). Costs about 10 us a collective on one host,
// behind the caller's back.
//
// States (states.h): shrinking, init, ready, revoking, kept, leaving, aborting, gone. Its first error closes
// it; close() wakes all waiters at once, and the thread aborts it, or stops what is under way and keeps it.
// An abort, or another call, that never returns is not waited for: the communicator is given up with its
// memory and thread, and end() and the log say so. The GPU may then still be at work in memory that it was
// given, and even freeing some may hang: the process must end, and Setup.on_stuck is called.
//
// From view to view: one that was made to be kept stays in NCCL when its use ends (keep()), and the next
// view's is made from it by ncclCommShrink, where all ranks hold one of the same view and some rank has left;
// else by init. What is under way when it is closed is stopped by ncclCommRevoke (NCCL 2.28.9), or by an
// abort, after which nothing is kept. Who ends its use in good order says goodbye on the host, and costs
// nobody an operation that is done here and not yet there. A shrink is always one with NCCL_SHRINK_ABORT:
// only then is nothing of the parent shared, whatever NCCL's environment says, and the parent's abort, which
// follows, not the child's. It is not what stops a broken one: it waits for kernels in the caller, and only
// when the next view comes. Where it fails on one rank, all go on with init.
//
// Threads and errors: collective/communicator.h; and INTERNAL for what CUDA and NCCL blame on themselves,
// INVALID_ARGUMENT for a use that NCCL refuses, each with NCCL's own words. UNAVAILABLE names the peer where
// the host's communicator knows it. An error of an operation comes from its own wait or from any later call.
// Memory given to an operation that failed must stay until the communicator is destroyed.
// Results: bit-identical on all ranks; the order of additions is NCCL's, by its choice of algorithm
// (`algorithm` here counts for nothing; NCCL_ALGO does), and fp16 and bf16 are rounded at every hop. kMean is
// ncclAvg: floats are divided before they are added.
// reduce_scatter and all_gather whose blocks differ in size, as block_begin() cuts them, are a group of one
// reduction, or broadcast, for each rank.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/collective/call_communicator.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/stream.h"
#include "runtime/nccl/agreement.h"
#include "runtime/nccl/library.h"
#include "runtime/nccl/states.h"

namespace paceline::nccl {

struct Limits {
  Duration leaving = std::chrono::seconds(1);  // until NCCL has let go of a communicator that nobody uses
  Duration abort = std::chrono::seconds(1);    // until ncclCommAbort has returned
  // Until a revoke has stopped all, else it is aborted: within a second of a peer's end in any case.
  Duration revoke = std::chrono::milliseconds(500);
  Duration kept = std::chrono::seconds(30);    // that it stays where nobody comes for it
  Duration shrink = std::chrono::seconds(10);  // until all ranks' are shrunk, else they are made anew
  int ranks_per_id = 64;                       // a larger world meets at several places
};

// Operations that were enqueued and not waited for: one more waits for the first to end.
inline constexpr std::size_t kMostInFlight = 64;

class NcclCommunicator;

struct Setup {
  std::shared_ptr<const Library> library;
  std::shared_ptr<const cuda::Context> context;
  // Of the same view, used by nobody else: rank, world and generation are its. What it needs must be there
  // until keep() or end() has returned.
  std::unique_ptr<collective::Communicator> host;
  Logger log = Logger::none();
  Limits limits;
  bool keeps = false;  // keep() keeps it
  // A kept one of an earlier view; it is gone when create() has returned. May be null.
  std::unique_ptr<NcclCommunicator> parent = nullptr;
  // Called where end() or keep() give it up; may be null.
  std::function<void()> on_stuck = nullptr;
};

class NcclCommunicator : public collective::CallCommunicator {
 public:
  // All ranks of the view call it. Until `deadline`. FAILED_PRECONDITION: two ranks have one GPU, or
  // different versions of NCCL (the message names them; all ranks say so); else as any call, and an error of
  // NCCL's names the rank that has it (collective/fault.h). `clock` outlives the communicator.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> create(Setup setup, const Clock& clock,
                                                                  Deadline deadline);
  // Leaves, or aborts where something is under way; within limits.leaving + limits.abort, about. One that is
  // kept is aborted; one that may be has limits.revoke more, and one that is being shrunk aborts its parent
  // first.
  ~NcclCommunicator() override = default;

  // Buckets: as all_reduce(), of what `after` was given so far, without waiting for the GPUs. `deadline` is
  // for its end. Gives its number; waits only where kMostInFlight are under way.
  virtual absl::StatusOr<std::uint64_t> enqueue_all_reduce(void* data, std::size_t count, DType dtype,
                                                           collective::ReduceOp op, cuda::Stream& after,
                                                           Deadline deadline) = 0;
  // Until operation `number` and all before it are done.
  virtual absl::Status wait(std::uint64_t number, Deadline deadline) = 0;
  // What is added to `stream` from now on comes after all operations so far: waits until they are handed to
  // the GPU, not until they are done.
  virtual absl::Status join(cuda::Stream& stream, Deadline deadline) = 0;

  virtual State state() const = 0;
  // In words: "shrunk from view 3", or "made anew" and why.
  virtual std::string origin() const = 0;
  // What the destructor does, once, and no call but it comes after. False where a call of NCCL does not
  // return, and what it holds was given up: the process should end.
  virtual bool end() = 0;
  // Ends its use: no call but these come after. Nothing of its is at work on the GPU any more, it has left
  // the host's view, as peers see, and it stays for limits.kept (state kKept) where it may be kept. False as
  // end(), which it is where it was not made to be kept.
  virtual bool keep() = 0;

  // create()'s, of its parent. What it is to the next view's, where it is kept: from now on it stays so until
  // it is handed over, or ended.
  virtual std::optional<Parent> offer() = 0;
  // REQUIRES: it was offered. Who asks has it now, and all that this object was ends.
  virtual ncclComm_t hand_over() = 0;
};

}  // namespace paceline::nccl
