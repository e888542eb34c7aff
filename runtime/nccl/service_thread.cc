// What the thread of a communicator does.

#include <thread>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "runtime/nccl/service.h"

namespace paceline::nccl {

namespace {

using collective::Call;
using collective::Kind;

// As in cuda/stream.cc: a question costs about a microsecond.
constexpr int kEagerQuestions = 200;
constexpr std::chrono::microseconds kPause{20};
constexpr std::chrono::milliseconds kIdle{100};  // until a communicator that nobody uses is looked at

absl::Status given_up_status() {
  return absl::AbortedError("the communicator was given up");
}

}  // namespace

Decision Service::step(Happening happening, ncclResult_t result) {
  State before = State::kGone;
  Decision decision;
  {
    auto shared = shared_.lock();
    before = shared->state;
    decision = decide(before, happening, result);
    shared->state = decision.next;
  }
  if (before != decision.next) {
    log_.debug(str_cat("NCCL's communicator of rank ", rank_, ": ", state_name(before), " to ",
                       state_name(decision.next), ": ", decision.reason));
  }
  return decision;
}

// After it, given_up_ is looked at before anything that is not this object's own.
template <typename Function>
ncclResult_t Service::nccl(const char* name, Function function) {
  calling_ = name;
  const ncclResult_t result = function();
  calling_ = nullptr;
  given_up_ = shared_.lock()->given_up;
  return result;
}

void Service::pause(int asked) const {
  if (asked >= kEagerQuestions) std::this_thread::sleep_for(kPause);
}

// Until what `call` began is no more in progress.
absl::Status Service::settle(ncclResult_t result, const char* call, Deadline deadline) {
  for (int asked = 0;; ++asked) {
    if (given_up_) return given_up_status();
    switch (step(Happening::kAnswer, result).action) {
      case Action::kAsk:
        break;
      case Action::kAbort:
        return with_context(library_->check(result, call), str_cat("rank ", rank_));
      case Action::kNone:
        return closing_.reason();
      default:
        return absl::OkStatus();
    }
    if (absl::Status why = interrupted(); !why.ok()) {
      step(Happening::kClosed);
      return why;
    }
    if (deadline.expired(clock_.now())) {
      step(Happening::kExpired);
      return absl::DeadlineExceededError(
          str_cat("rank ", rank_, ": ", call,
                  " was still in progress at its deadline; NCCL does not tell for whom it waits"));
    }
    pause(asked);
    ncclResult_t told = ncclSuccess;
    const ncclResult_t answer =
        nccl("ncclCommGetAsyncError", [&] { return library_->calls().ncclCommGetAsyncError(comm_, &told); });
    result = answer == ncclSuccess ? told : answer;
  }
}

absl::Status Service::open() {
  PL_RETURN_IF_ERROR(context_->enter());
  PL_RETURN_IF_ERROR(agreement_.on_setup(context_->device().uuid, library_->version(), opening_));
  const Library::Calls& call = library_->calls();
  const bool scalable = call.ncclCommInitRankScalable != nullptr;
  const int ranks_per_id = scalable ? limits_.ranks_per_id : world_;
  ncclUniqueId id{};
  if (rank_ % ranks_per_id == 0) {
    const ncclResult_t made = nccl("ncclGetUniqueId", [&] { return call.ncclGetUniqueId(&id); });
    if (given_up_) return given_up_status();
    PL_RETURN_IF_ERROR(library_->check(made, "ncclGetUniqueId"));
  }
  PL_ASSIGN_OR_RETURN(std::vector<ncclUniqueId> ids, agreement_.on_ids(id, ranks_per_id, opening_));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const char* const name = scalable ? "ncclCommInitRankScalable" : "ncclCommInitRankConfig";
  const ncclResult_t begun = nccl(name, [&] {
    return scalable ? call.ncclCommInitRankScalable(&comm_, world_, rank_, static_cast<int>(ids.size()),
                                                    ids.data(), &config)
                    : call.ncclCommInitRankConfig(&comm_, world_, ids[0], rank_, &config);
  });
  return settle(begun, name, opening_);
}

void Service::run() {
  absl::Status status = open();
  if (given_up_) return;
  if (!status.ok()) {
    fail(std::move(status)).IgnoreError();
    step(Happening::kClosed);
  }
  while (!given_up_ && state() == State::kReady) turn();
  release();
  if (!given_up_) shared_.lock()->ended = true;
}

void Service::turn() {
  Shared now;
  {
    auto shared = shared_.lock_when(
        [this](const Shared& s) { return closing_.is_closed() || s.let_go || s.posted > s.done; }, kIdle);
    now = *shared;
  }
  given_up_ = now.given_up;
  if (given_up_) return;
  absl::Status status = interrupted();
  bool reached = false;
  if (status.ok() && now.begun > now.done) status = poll(operation(now.done + 1), reached);
  if (status.ok() && !given_up_ && !reached) {
    if (now.posted > now.begun) {
      status = begin(operation(now.begun + 1));
    } else if (now.let_go && now.begun > now.done) {
      status = absl::AbortedError("the communicator was destroyed while an operation was under way");
    } else if (now.let_go) {
      step(Happening::kLetGo);
    } else if (now.begun > now.done) {
      pause(asked_++);
    } else {
      ncclResult_t told = ncclSuccess;
      const ncclResult_t answer = nccl("ncclCommGetAsyncError",
                                       [&] { return library_->calls().ncclCommGetAsyncError(comm_, &told); });
      status = library_->check(answer == ncclSuccess ? told : answer, "ncclCommGetAsyncError");
    }
  }
  if (given_up_ || status.ok()) return;
  fail(std::move(status)).IgnoreError();
  step(Happening::kClosed);
}

// Whether the oldest operation that the GPU has is done.
absl::Status Service::poll(Operation& oldest, bool& reached) {
  PL_ASSIGN_OR_RETURN(reached, oldest.done.reached());
  if (reached) {
    asked_ = 0;
    transfer_ns_ += (clock_.now() - oldest.begun).count();
    ++finished_;
    ++shared_.lock()->done;
    return absl::OkStatus();
  }
  ncclResult_t told = ncclSuccess;
  const ncclResult_t answer =
      nccl("ncclCommGetAsyncError", [&] { return library_->calls().ncclCommGetAsyncError(comm_, &told); });
  if (given_up_) return given_up_status();
  const absl::Status status =
      library_->check(answer == ncclSuccess ? told : answer, kind_name(oldest.call.kind));
  if (!status.ok()) return with_context(status, str_cat("rank ", rank_));
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
  if (next.after) PL_RETURN_IF_ERROR(stream_.wait_for(next.ready));
  const char* name = "";
  const ncclResult_t issued = issue(next.call, name);
  PL_RETURN_IF_ERROR(settle(issued, name, next.deadline));
  PL_RETURN_IF_ERROR(next.done.record(stream_));
  ++shared_.lock()->begun;
  return absl::OkStatus();
}

ncclResult_t Service::issue(const Call& c, const char*& name) {
  const Library::Calls& call = library_->calls();
  const auto world = static_cast<std::size_t>(world_), rank = static_cast<std::size_t>(rank_);
  const ncclDataType_t type = *nccl_type(c.dtype);
  const std::size_t part = c.bytes() / world;  // where the blocks are equal
  const cudaStream_t stream = stream_.handle();
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
      return reduces ? call.ncclReduce(at, at, count, type, nccl_op(c.op), r, comm_, stream_.handle())
                     : call.ncclBroadcast(at, at, count, type, r, comm_, stream_.handle());
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

void Service::release() {
  const Library::Calls& call = library_->calls();
  if (!given_up_ && state() == State::kLeaving) {
    const Deadline deadline = Deadline::after(clock_.now(), limits_.leaving);
    const absl::Status left = settle(nccl("ncclCommFinalize", [&] { return call.ncclCommFinalize(comm_); }),
                                     "ncclCommFinalize", deadline);
    if (given_up_) return;
    if (left.ok()) {
      nccl("ncclCommDestroy", [&] { return call.ncclCommDestroy(comm_); });
      if (!given_up_) step(Happening::kReleased);
    } else {
      log_.warning(str_cat("NCCL's communicator is aborted, it could not be left: ", left.message()));
    }
  }
  if (given_up_ || state() != State::kAborting) return;
  if (comm_ != nullptr) nccl("ncclCommAbort", [&] { return call.ncclCommAbort(comm_); });
  if (!given_up_) step(Happening::kReleased);
}

}  // namespace paceline::nccl
