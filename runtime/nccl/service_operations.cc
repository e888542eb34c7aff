// What the thread of a communicator does of its operations, while it is ready.

#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "runtime/cuda/polling.h"
#include "runtime/nccl/service.h"

namespace paceline::nccl {

namespace {

using collective::Call;
using collective::Kind;

}  // namespace

void Service::turn() {
  Shared now;
  {
    auto shared = shared_.lock_when(
        [this](const Shared& s) { return closing_.is_closed() || s.let_go || s.posted > s.done; }, kIdle);
    now = *shared;
  }
  given_up_ = now.given_up;
  if (given_up_) return;
  if (absl::Status why = interrupted(); !why.ok()) return part(std::move(why));
  absl::Status status;
  bool reached = false;
  if (now.begun > now.done) status = poll(operation(now.done + 1), reached);
  if (status.ok() && !given_up_ && !reached) {
    if (now.posted > now.begun) {
      status = begin(operation(now.begun + 1));
    } else if (now.let_go && now.begun > now.done) {
      status = absl::AbortedError("the communicator was destroyed while an operation was under way");
    } else if (now.let_go) {
      step(Event::kLetGo);
    } else if (now.begun > now.done) {
      cuda::pause_after(asked_++);
    } else if (const ncclResult_t told = ask(comm_); !given_up_) {
      status = library_->check(told, "ncclCommGetAsyncError");
      if (!status.ok()) step(Event::kAnswer, told);
    }
  }
  if (!given_up_ && !status.ok()) part(std::move(status));
}

// Its use ends. What a peer that has gone saw the end of is about to end here, too, and counts.
void Service::part(absl::Status why) {
  Event event = unsettled_ ? Event::kClosed : Event::kParted;
  for (int asked = 0; event == Event::kParted;) {
    const Shared now = *shared_.lock();
    if (now.begun == now.done) break;
    Operation& oldest = operation(now.done + 1);
    const absl::StatusOr<bool> reached = oldest.done.reached();
    if (reached.ok() && *reached) {
      count(oldest);
    } else if (!reached.ok() || ++asked == cuda::kEagerQuestions) {
      event = Event::kClosed;
    }
  }
  fail(std::move(why)).IgnoreError();
  step(event);
}

void Service::count(Operation& done) {
  asked_ = 0;
  transfer_ns_ += (clock_.now() - done.begun).count();
  ++finished_;
  ++shared_.lock()->done;
}

// Whether the oldest operation that the GPU has is done.
absl::Status Service::poll(Operation& oldest, bool& reached) {
  PL_ASSIGN_OR_RETURN(reached, oldest.done.reached());
  if (reached) {
    count(oldest);
    return absl::OkStatus();
  }
  const ncclResult_t told = ask(comm_);
  if (given_up_) return given_up_status();
  const absl::Status status = library_->check(told, kind_name(oldest.call.kind));
  if (!status.ok()) {
    step(Event::kAnswer, told);
    return with_context(status, str_cat("rank ", rank_));
  }
  if (oldest.deadline.expired(clock_.now())) {
    return absl::DeadlineExceededError(
        str_cat("rank ", rank_, ": ", collective::describe(oldest.call),
                " was still under way on the GPU at its deadline; NCCL does not "
                "tell for whom it waits"));
  }
  return absl::OkStatus();
}

absl::Status Service::begin(Operation& next) {
  const TimePoint from = clock_.now();
  PL_RETURN_IF_ERROR(agreement_.on_call(next.call, next.number, next.deadline));
  next.begun = clock_.now();
  wait_ns_ += (next.begun - from).count();
  if (next.after) PL_RETURN_IF_ERROR(stream_->wait_for(next.ready));
  const char* name = "";
  const ncclResult_t issued = issue(next.call, name);
  PL_RETURN_IF_ERROR(settle(issued, name, comm_, next.deadline));
  unsettled_ = true;  // without its mark nobody knows of its end
  PL_RETURN_IF_ERROR(next.done.record(*stream_));
  unsettled_ = false;
  ++shared_.lock()->begun;
  return absl::OkStatus();
}

ncclResult_t Service::issue(const Call& c, const char*& name) {
  const Library::Calls& call = library_->calls();
  const auto world = static_cast<std::size_t>(world_), rank = static_cast<std::size_t>(rank_);
  const ncclDataType_t type = *nccl_type(c.dtype);
  const std::size_t part = c.bytes() / world;  // where the blocks are equal
  const cudaStream_t stream = stream_->handle();
  // What a ring moves: NCCL does not tell.
  const std::size_t ring = (world - 1) * c.bytes() / world;
  if (c.count == 0) return ncclSuccess;  // and a barrier: the hosts have met
  switch (c.kind) {
    case Kind::kAllReduce:
      bytes_ += 2 * ring;
      name = "ncclAllReduce";
      return nccl(name, [&] {
        return call.ncclAllReduce(c.data, c.data, c.count, type, nccl_op(c.op), comm_, stream);
      });
    case Kind::kReduceScatter:
      bytes_ += ring;
      if (c.count % world != 0) return issue_blocks(c, name);
      name = "ncclReduceScatter";
      return nccl(name, [&] {
        return call.ncclReduceScatter(c.data, c.data + rank * part, c.count / world, type, nccl_op(c.op),
                                      comm_, stream);
      });
    case Kind::kAllGather:
      bytes_ += ring;
      if (c.count % world != 0) return issue_blocks(c, name);
      name = "ncclAllGather";
      return nccl(name, [&] {
        return call.ncclAllGather(c.data + rank * part, c.data, c.count / world, type, comm_, stream);
      });
    case Kind::kBroadcast:
      bytes_ += ring;
      name = "ncclBroadcast";
      return nccl(name,
                  [&] { return call.ncclBroadcast(c.data, c.data, c.count, type, c.root, comm_, stream); });
    case Kind::kBarrier:
      break;
  }
  return ncclSuccess;
}

// Blocks that differ in size: one call for each rank's, as one operation of the GPU.
ncclResult_t Service::issue_blocks(const Call& c, const char*& name) {
  const Library::Calls& call = library_->calls();
  const ncclDataType_t type = *nccl_type(c.dtype);
  const bool reduces = c.kind == Kind::kReduceScatter;
  name = "ncclGroupStart";
  ncclResult_t result = nccl(name, [&] { return call.ncclGroupStart(); });
  if (given_up_ || result != ncclSuccess) return result;
  for (int r = 0; r < world_ && !given_up_ && result == ncclSuccess; ++r) {
    const std::size_t first = collective::block_begin(c.count, world_, r),
                      count = collective::block_begin(c.count, world_, r + 1) - first;
    if (count == 0) continue;
    std::byte* const at = c.data + first * dtype_bytes(c.dtype);
    name = reduces ? "ncclReduce" : "ncclBroadcast";
    result = nccl(name, [&] {
      return reduces ? call.ncclReduce(at, at, count, type, nccl_op(c.op), r, comm_, stream_->handle())
                     : call.ncclBroadcast(at, at, count, type, r, comm_, stream_->handle());
    });
    // In a group of a non-blocking communicator: it is taken.
    if (result == ncclInProgress) result = ncclSuccess;
  }
  if (given_up_) return result;
  // A group is always closed: the next call of this thread would be part of it.
  const ncclResult_t closed = nccl("ncclGroupEnd", [&] { return call.ncclGroupEnd(); });
  if (result != ncclSuccess) return result;
  name = "ncclGroupEnd";
  return closed;
}

}  // namespace paceline::nccl
