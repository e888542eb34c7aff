#pragma once

// Collectives among the members of one view.
//
// Lifetime: a Communicator is bound to one view (one generation) for life. Its first error closes it, wakes
// every waiter within a millisecond, and is what every later call returns; it is replaced, never repaired.
// Threads: collectives are called by one thread at a time, in the same order on all ranks. close(), closed()
// and counters() may be called from any thread at any time. No call waits past its deadline. Errors:
// UNAVAILABLE - a peer is gone or refused (the message names rank and member); DEADLINE_EXCEEDED - names the
// rank that was waited for; ABORTED - close() was called; INVALID_ARGUMENT - shape, type or alignment;
// FAILED_PRECONDITION - frames of another generation. Where an error is about one peer, faulty_rank()
// (fault.h) tells which.
// Results are bit-identical on all ranks and from run to run: the order in which contributions are combined
// depends on rank, world size, element count and algorithm alone. Between ranks that share memory, and over
// links with the direct algorithm (all of fp16 and bf16 under kAuto, up to schedule.h's kFullMesh ranks),
// every element is folded in rank order, 0 to N-1; fp16 and bf16 in fp32, rounded once. Where partial sums
// travel (ring, recursive doubling, halving-doubling), fp16 and bf16 are added in fp32 and rounded at every
// hop. "Mean" divides once, after the sum. NaNs and more: reduce.h.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/dtype.h"
#include "base/ids.h"
#include "runtime/transport/link_use.h"

namespace paceline::collective {

enum class ReduceOp : std::uint8_t { kSum = 0, kMean = 1, kMin = 2, kMax = 3 };
enum class Algorithm : std::uint8_t {
  kAuto = 0,
  kRing,
  kRecursiveDoubling,
  kHalvingDoubling,
  kDirect,       // the better of the next two, by size
  kDirectWhole,  // this and the next are for measuring: a job can't ask for them
  kDirectBlocks,
};

// Monotonic, since the communicator was made. "Sent" counts payload bytes that left this rank for a peer,
// whether by a socket or by a peer reading this rank's registered memory; headers are apart.
struct Counters {
  std::uint64_t bytes_sent = 0;
  std::uint64_t header_bytes_sent = 0;
  std::uint64_t operations = 0;
  std::int64_t wait_ns = 0;      // blocked because a peer had not come yet
  std::int64_t transfer_ns = 0;  // moving and reducing bytes
  int kept_links = 0;            // to so many peers the connections are those of an earlier view
};

// A link to a peer, as it is used for what this rank sends.
struct Link {
  int rank = 0;
  transport::LinkUse use;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual Generation generation() const = 0;

  // `algorithm` is followed over links; ranks that share memory always fold directly, which costs them least.
  // In place over `count` elements at `data` (any memory; memory of the fabric's Arena is used without
  // staging).
  virtual absl::Status all_reduce(void* data, std::size_t count, DType dtype, ReduceOp op, Deadline deadline,
                                  Algorithm algorithm = Algorithm::kAuto) = 0;
  // Rank r's block of `data`, [block_begin(count, world, r), block_begin(count, world, r + 1)), is the
  // reduction of all ranks' blocks r; other blocks are left with unspecified values.
  virtual absl::Status reduce_scatter(void* data, std::size_t count, DType dtype, ReduceOp op,
                                      Deadline deadline) = 0;
  // Every rank's block r becomes rank r's.
  virtual absl::Status all_gather(void* data, std::size_t count, DType dtype, Deadline deadline) = 0;
  virtual absl::Status broadcast(void* data, std::size_t count, DType dtype, int root, Deadline deadline) = 0;
  virtual absl::Status barrier(Deadline deadline) = 0;

  // Closes with `reason` (made ABORTED where it is OK); idempotent; the first reason stays.
  virtual void close(absl::Status reason) = 0;
  // Ends a view in which this rank makes no call any more, and all that it made have ended well: peers are
  // told nothing, and its links wait for the next view that the fabric connects. It is closed then; nothing
  // happens where it is already. Called as collectives are.
  virtual void retire() {}
  // OK while open, else why it closed.
  virtual absl::Status closed() const = 0;
  virtual Counters counters() const = 0;
  // The TCP links over which it has sent something, by rank; none where the kernel does not tell. Any thread,
  // but not beside retire().
  virtual std::vector<Link> links() const { return {}; }
};

// First element of block `rank` when `count` elements are cut for `world` ranks: blocks differ by at most one
// element.
constexpr std::size_t block_begin(std::size_t count, int world, int rank) {
  const std::size_t base = count / static_cast<std::size_t>(world),
                    extra = count % static_cast<std::size_t>(world);
  const auto r = static_cast<std::size_t>(rank);
  return base * r + (r < extra ? r : extra);
}

}  // namespace paceline::collective
