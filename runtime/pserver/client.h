#pragma once

// A worker's side of the parameter servers of one view (docs/parameter-servers.md).
//
//   client = Client::connect(...);
//   if (rank == 0) client->initialize(state, deadline);
//   while (true) {
//     turn = client->wait_turn(deadline);          // `weights` are those of turn.version
//     if (turn.finished) break;
//     client->pull_rows(pulls, deadline);          // sparse tables: the rows of turn.unit's samples
//     compute the gradient of turn.unit; as parts of it become final: client->push(begin, end);
//     client->push_rows(pushes);                   // ... and their gradients
//     client->commit({loss_sum, samples, wishes});
//   }
//   client->leave();
//
// Push and pull are one round trip with each server: nothing is heard between a turn's first push and the
// next turn, whose weights answer all of it. Rows are pulled in one more, since the turn says which.
//
// Weights and gradient are the caller's, as long as the model's layout, and outlive the client; the gradient
// lies in the fabric's arena. Between wait_turn() and push() a range of the gradient belongs to the caller;
// between push() and the return of the next wait_turn() to the servers, which may read it where it lies.
// The weights belong to the client while wait_turn() runs, else to the caller. Gradients of rows
// (sparse/rows.h, RowsPush) lie in the arena, too, and belong to the servers likewise.
//
// Lifetime: bound to one view. The first error closes it and is what every later call returns; it is
// replaced, never repaired. Threads: calls come from one thread at a time, but for take_snapshot() and
// take_rows(), which may run in another beside them, and interrupt(), close(), closed(), counters() and
// staleness(), which any thread may call at any time. A snapshot is taken before leave(), and nothing called
// after it. After the first turn nothing is allocated, but where more rows are pulled or pushed than ever
// before. No wait passes its deadline, but that of a turn while worker 0 holds all up (wait_turn()) or
// weights and gradients move; where rows are pulled, or a state is loaded or saved, the deadline is one of
// progress: whenever bytes have moved it is as far off again as it was at the call. close() ends a wait
// within a millisecond, and so does interrupt(), after which the servers can still be asked for a snapshot.
// Errors, as the communicator's: UNAVAILABLE - a server is gone; DEADLINE_EXCEEDED - names who was waited
// for: a server that does not answer, or the worker that has not pushed; ABORTED - close() was called;
// INVALID_ARGUMENT - a peer sent what is no frame, or one that can't be meant; FAILED_PRECONDITION - the
// servers hold another model. Where an error is about one peer, collective::faulty_rank() tells which.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/collective/fabric.h"
#include "runtime/pserver/policy/policy.h"
#include "runtime/pserver/sparse/rows.h"
#include "runtime/pserver/sparse/table_spec.h"
#include "runtime/tensor/program.h"

namespace paceline::pserver {

// So long may worker 0, while all wait for what it loads or saves, move nothing.
inline constexpr Duration kStallLimit = std::chrono::minutes(30);

struct ClientOptions {
  int workers = 0;              // of the group: ranks [0, workers), the chief first
  int servers = 0;              // ranks [workers, workers + servers); the first of them sequences
  std::size_t slice_bytes = 0;  // 0: kDefaultSliceBytes (shard_map.h); all members say the same
  std::vector<sparse::TableSpec> tables = {};  // sparse ones, likewise; rows.h counts them in this order
  Duration stall_limit = kStallLimit;
};

// Optimiser state as checkpoints name it (optimizer::StateVector), as long as the weights.
template <typename Float>
struct NamedVector {
  std::string name;
  std::span<Float> values;
};

// What the servers begin with. `optimizer` empty: zeros.
struct InitialState {
  std::span<const float> weights;
  std::vector<NamedVector<const float>> optimizer;  // in the order of optimizer::Optimizer::state()
  std::int64_t optimizer_steps = 0;                 // updates that made this state: Adam's bias correction
  PolicyStart start;
  // The rows that the tables begin with, in any order and of any number of servers; null: none are there yet.
  // Used during initialize() alone.
  sparse::RowSource* rows = nullptr;
};

// What a worker wants all to know. stop, drain and target_reached stay once anybody has wished them; save is
// worker 0's, and holds until its next commit.
struct Wishes {
  bool stop = false;
  bool drain = false;
  bool save = false;
  bool target_reached = false;  // no more turns: everybody's next one is `finished`
  bool operator==(const Wishes&) const = default;
};

struct Commit {
  double loss_sum = 0;  // over the samples of the unit
  std::int64_t samples = 0;
  Wishes wishes;
};

struct TurnResult {
  bool finished = false;  // no unit: all steps are applied, or the target is reached. Weights are the last
  Unit unit = -1;
  Unit next = -1;       // what this worker will probably be given then; -1: not known
  Version version = 0;  // of the weights: updates in this view
  Step step = 0;        // global batches that are in them
  Wishes agreed;
  // What was applied since this worker's last turn, by all workers.
  std::int64_t updates = 0;
  std::int64_t gradients = 0;
  std::int64_t samples = 0;
  double loss_sum = 0;
  double learning_rate = 0;  // of the newest update; 0 before the first
  // Of this worker's last gradient.
  bool dropped = false;
  std::int64_t staleness = -1;  // updates between its read and its own; -1: it is in no update (yet), or none
};

// Rows that a server's updates changed before worker 0 took them: the next update waits where they are more.
inline constexpr std::uint64_t kMaxKeptBytes = std::uint64_t{256} << 20;

// One consistent state of all servers.
struct SnapshotInfo {
  Version version = 0;
  Step step = 0;
  UnitsApplied units;
  std::int64_t optimizer_steps = 0;
};

// Since the client was made: the time in which pull_rows(), push(), push_rows(), commit() and wait_turn()
// held the caller. Whoever reads them before and after some calls knows what those took.
struct ClientTimes {
  Duration wait{};      // the turn had not come yet
  Duration transfer{};  // bytes moved
};

struct ClientCounters {
  std::uint64_t bytes_sent = 0;  // gradient bytes that left for the servers, by socket or by their reading
  std::uint64_t bytes_received = 0;  // weights; in both, ids (8 bytes each) and floats of sparse tables, too
  std::uint64_t floats_ahead = 0;    // weights that were read while they were made
  // Up to the last turn, of the connections for requests: to and from all servers, and how often each of them
  // was heard after something had been sent to it.
  std::uint64_t frames_sent = 0;
  std::uint64_t frames_received = 0;
  std::uint64_t round_trips = 0;
};

class Client {
 public:
  // Meets the servers of the group. The fabric's errors of connect(); INVALID_ARGUMENT: the group does not
  // fit the options, or the gradient does not lie in the fabric's arena.
  static absl::StatusOr<std::unique_ptr<Client>> connect(collective::Fabric& fabric,
                                                         const collective::Group& group,
                                                         const ClientOptions& options,
                                                         const tensor::ParameterLayout& layout,
                                                         std::span<float> weights, std::span<float> gradient,
                                                         const Clock& clock, Deadline deadline);
  virtual ~Client() = default;

  // Worker 0, before initialize(), as often as it likes while it reads what it will say there: so others know
  // that it is about it. Never waits.
  virtual absl::Status report_loading() = 0;
  // Worker 0, once, before its first wait_turn(): what the servers hold from now on. Returns when all of it
  // is on its way; rows go as the source gives them, a few MiB at a time. Others' first turn waits for it.
  // The source's error, or INVALID_ARGUMENT where it gives rows that no table has, closes the client. The
  // deadline is one of progress; what the source takes of the time is not the servers'.
  virtual absl::Status initialize(const InitialState& state, Deadline deadline) = 0;

  // REQUIRES: nothing is out (the first call, or after commit()). Where the deadline has passed the servers
  // are asked why. While worker 0 holds all up, by what it loads, or by rows of a snapshot that it has yet to
  // take, this waits on, and blames it only where it has moved nothing for ClientOptions::stall_limit; what
  // is waited for after that has the time of the call anew. So it has whenever some of a gradient, of rows or
  // of weights has moved.
  virtual absl::StatusOr<TurnResult> wait_turn(Deadline deadline) = 0;
  // Fills the rows that `pulls` name, of any tables, each table at most once: one round trip to all servers
  // at once. They are those of the moment, each whole: where all wait for all those of turn.version, else of
  // that version or later. After wait_turn(), the one that was `finished` among them, and before commit(); as
  // often as needed. The caller's memory, `ids` and `rows`, is used during the call alone; it may lie
  // anywhere. INVALID_ARGUMENT of sparse::check_rows(), or more than sparse::kMaxFloatsPerCall floats in all:
  // the caller's mistake, nothing is asked and the client stays open. DEADLINE_EXCEEDED names the server that
  // does not answer; CANCELLED: interrupt() was called.
  virtual absl::Status pull_rows(std::span<const sparse::RowsPull> pulls, Deadline deadline) = 0;
  // Elements [begin, end) of the gradient are final. Ranges of a unit are disjoint and cover the gradient by
  // the time of commit(); they need not end where slices do. Never waits: what a socket does not take now
  // goes with a later call.
  virtual absl::Status push(std::size_t begin, std::size_t end) = 0;
  // The gradients of the unit's rows, of any tables, each table at most once: they count with its dense
  // gradient, on all servers or on none. Once per unit, before commit(), or not at all where it has none; an
  // empty push is right, too. Never waits. INVALID_ARGUMENT as pull_rows(), and where a gradient does not lie
  // in the fabric's arena: nothing is sent and the client stays open.
  virtual absl::Status push_rows(std::span<const sparse::RowsPush> pushes) = 0;
  // The gradient is whole, and counts as the mode says. Never waits.
  virtual absl::Status commit(const Commit& commit) = 0;
  // Wishes beside a commit. Never waits.
  virtual absl::Status wish(const Wishes& wishes) = 0;

  // Worker 0: the servers keep a copy of the next version that they all reach (the present one, where nothing
  // is under way), and go on. Never waits. FAILED_PRECONDITION: the one before was not taken yet.
  virtual absl::Status begin_snapshot() = 0;
  // Waits until all that was pushed, committed and asked for is on its way. DEADLINE_EXCEEDED names the
  // server that does not take it; it is one of progress. The thread of the turns, which wait for the same by
  // themselves until they are interrupted.
  virtual absl::Status flush(Deadline deadline) = 0;
  // Collects that copy into vectors as long as the weights; `optimizer` in the order of
  // optimizer::Optimizer::state(). The servers then drop it; where there are tables, after take_rows().
  // The deadline is one of progress. `moved`, unless null, is called in this thread whenever some of it has
  // come. REQUIRES: begin_snapshot(); one thread at a time.
  virtual absl::StatusOr<SnapshotInfo> take_snapshot(std::span<float> weights,
                                                     std::span<const std::span<float>> optimizer,
                                                     Deadline deadline,
                                                     const std::function<void()>& moved = nullptr) = 0;
  // The rows of that state, all of them once, the tables in turn, from all servers beside each other: a few
  // MiB are under way at a time. Then the servers drop their copy, and the next snapshot may begin. Where
  // there are no tables it does nothing. The thread of the turns must not wait for a turn between
  // begin_snapshot() and this, if both are its own: updates wait while servers keep more than
  // kMaxKeptBytes of old rows for it. REQUIRES: take_snapshot() returned OK, and this was not called since.
  // The sink's error is returned when the servers know of it: the snapshot is over, the client stays open.
  // So it is where a server is late (the deadline is one of progress, and what the sink takes of the time is
  // not the server's), unless that server does not end what it was asked for within the same time again: then
  // no other snapshot begins.
  virtual absl::Status take_rows(sparse::RowSink& sink, Deadline deadline) = 0;

  // This worker computes no more; the servers do not count it as lost. Never waits.
  virtual absl::Status leave() = 0;

  virtual ClientTimes times() const = 0;  // the thread of the turns
  virtual ClientCounters counters() const = 0;
  virtual v1::StalenessStats staleness() const = 0;

  // This worker takes no more turns: from now on initialize() and wait_turn() return CANCELLED, at once.
  // Unlike close() it keeps the links, for a last snapshot and for leave().
  virtual void interrupt() = 0;
  virtual bool interrupted() const = 0;

  // Closes with `reason` (ABORTED where it is OK); the first reason stays. A worker that closes without
  // leave() is lost to the servers.
  virtual void close(absl::Status reason) = 0;
  virtual absl::Status closed() const = 0;
};

}  // namespace paceline::pserver
