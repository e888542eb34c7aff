// What the thread of a communicator does.

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "runtime/cuda/polling.h"
#include "runtime/nccl/service.h"

namespace paceline::nccl {

namespace {

using collective::Call;
using collective::Kind;

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
    const bool keeps = !shared->ending && !unsettled_;
    decision = decide(before, happening, result, keeps ? keeping_ : Keeping::kNever);
    shared->state = decision.next;
    if (before < State::kKept && decision.next == State::kKept)
      shared->kept_until = Deadline::after(clock_.now(), limits_.kept);
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

ncclResult_t Service::ask(ncclComm_t about) {
  ncclResult_t told = ncclSuccess;
  const ncclResult_t answer =
      nccl("ncclCommGetAsyncError", [&] { return library_->calls().ncclCommGetAsyncError(about, &told); });
  return answer == ncclSuccess ? told : answer;
}

// Until what `call` began is no more in progress, as `about` tells.
absl::Status Service::settle(ncclResult_t result, const char* call, ncclComm_t about, Deadline deadline) {
  unsettled_ = true;
  for (int asked = 0;; ++asked) {
    if (given_up_) return given_up_status();
    switch (step(Happening::kAnswer, result).action) {
      case Action::kAsk:
        break;
      case Action::kAbort:
      case Action::kUndo:
        return with_context(library_->check(result, call), str_cat("rank ", rank_));
      case Action::kNone:
        return closing_.reason();
      default:
        unsettled_ = false;
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
    cuda::pause_after(asked);
    result = ask(about);
  }
}

absl::Status Service::open() {
  PL_RETURN_IF_ERROR(context_->enter());
  if (parent_ == nullptr) return init();
  PL_ASSIGN_OR_RETURN(const bool shrunk, shrink());
  shared_.lock()->with_parent = false;
  return shrunk ? absl::OkStatus() : init();
}

absl::Status Service::init() {
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
  return settle(begun, name, comm_, opening_);
}

// False: not all ranks have it, and parent and child are gone.
absl::StatusOr<bool> Service::shrink() {
  std::vector<int> excluded = shared_.lock()->origin.excluded;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclResult_t begun = nccl("ncclCommShrink", [&] {
    return library_->calls().ncclCommShrink(parent_, excluded.data(), static_cast<int>(excluded.size()),
                                            &comm_, &config, NCCL_SHRINK_ABORT);
  });
  // The parent tells how it goes on, of which the call itself says nothing but that it has begun.
  const absl::Status shrunk = settle(begun == ncclSuccess ? ncclInProgress : begun, "ncclCommShrink", parent_,
                                     Deadline(std::min(opening_.at(), clock_.now() + limits_.shrink)));
  if (given_up_ || state() == State::kAborting) return shrunk.ok() ? given_up_status() : shrunk;
  if (!shrunk.ok()) {
    // First the parent: until its abort has returned, NCCL may still be at work for the child.
    abort(parent_);
    if (!given_up_) abort(comm_);
    if (given_up_) return given_up_status();
  }
  PL_ASSIGN_OR_RETURN(const std::optional<int> without, agreement_.on_shrunk(shrunk.ok(), opening_));
  abort(parent_);  // no rank needs it any more
  if (given_up_) return given_up_status();
  if (!without.has_value()) {
    step(Happening::kAllShrunk);
    return true;
  }
  if (shrunk.ok()) {
    step(Happening::kNotShrunk);
    abort(comm_);
    if (given_up_) return given_up_status();
  }
  log_.warning(str_cat("no communicator was shrunk from that of the last view, rank ", *without,
                       " could not; they are made anew", shrunk.ok() ? "" : ": ", shrunk.message()));
  auto shared = shared_.lock();
  shared->origin = {.why = str_cat("rank ", *without, " could not shrink that of the last view")};
  return false;
}

void Service::run() {
  absl::Status status = open();
  if (given_up_) return;
  if (!status.ok()) {
    fail(std::move(status)).IgnoreError();
    step(Happening::kClosed);
  }
  while (!given_up_ && state() == State::kReady) turn();
  if (!given_up_ && state() == State::kRevoking) revoke();
  if (!given_up_ && state() == State::kKept) stay();
  release();
  if (given_up_) return;
  // Its owner may yet look at it.
  if (shared_.lock()->let_go) {
    operations_.clear();
    stream_.reset();
  }
  shared_.lock()->ended = true;
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
      step(Happening::kLetGo);
    } else if (now.begun > now.done) {
      cuda::pause_after(asked_++);
    } else if (const ncclResult_t told = ask(comm_); !given_up_) {
      status = library_->check(told, "ncclCommGetAsyncError");
      if (!status.ok()) step(Happening::kAnswer, told);
    }
  }
  if (!given_up_ && !status.ok()) part(std::move(status));
}

// Its use ends. What a peer that has gone saw the end of is about to end here, too, and counts.
void Service::part(absl::Status why) {
  Happening happening = unsettled_ ? Happening::kClosed : Happening::kParted;
  for (int asked = 0; happening == Happening::kParted;) {
    const Shared now = *shared_.lock();
    if (now.begun == now.done) break;
    Operation& oldest = operation(now.done + 1);
    const absl::StatusOr<bool> reached = oldest.done.reached();
    if (reached.ok() && *reached) {
      count(oldest);
    } else if (!reached.ok() || ++asked == cuda::kEagerQuestions) {
      happening = Happening::kClosed;
    }
  }
  fail(std::move(why)).IgnoreError();
  step(happening);
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
    step(Happening::kAnswer, told);
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

// Stops what is under way, and leaves the rest.
void Service::revoke() {
  const Deadline deadline = Deadline::after(clock_.now(), limits_.revoke);
  ncclResult_t result =
      nccl("ncclCommRevoke", [&] { return library_->calls().ncclCommRevoke(comm_, NCCL_REVOKE_DEFAULT); });
  for (int asked = 0; !given_up_; ++asked) {
    if (step(Happening::kAnswer, result).action != Action::kAsk) return;
    if (deadline.expired(clock_.now())) {
      step(Happening::kExpired);
      return;
    }
    cuda::pause_after(asked);
    result = ask(comm_);
  }
}

void Service::stay() {
  leave_view();
  shared_.lock()->stays = true;
  while (!given_up_ && state() == State::kKept) {
    auto shared = shared_.lock_when(
        [](const Shared& s) { return s.ending || s.given_up || s.state != State::kKept; }, kIdle);
    given_up_ = shared->given_up;
    if (given_up_) return;
    // Under one lock: what is offered does not expire.
    if (shared->ending) {
      shared->state = decide(shared->state, Happening::kLetGo).next;
    } else if (!shared->offered && shared->kept_until->expired(clock_.now())) {
      shared->state = decide(shared->state, Happening::kExpired).next;
    }
  }
}

void Service::release() {
  const Library::Calls& call = library_->calls();
  if (!given_up_ && state() == State::kLeaving) {
    const Deadline deadline = Deadline::after(clock_.now(), limits_.leaving);
    const absl::Status left = settle(nccl("ncclCommFinalize", [&] { return call.ncclCommFinalize(comm_); }),
                                     "ncclCommFinalize", comm_, deadline);
    if (given_up_) return;
    if (left.ok()) {
      nccl("ncclCommDestroy", [&] { return call.ncclCommDestroy(comm_); });
      if (!given_up_) step(Happening::kReleased);
    } else {
      log_.warning(str_cat("NCCL's communicator is aborted, it could not be left: ", left.message()));
    }
  }
  if (given_up_ || state() != State::kAborting) return;
  abort(parent_);
  if (!given_up_) abort(comm_);
  if (!given_up_) step(Happening::kReleased);
}

void Service::abort(ncclComm_t& communicator) {
  if (communicator == nullptr) return;
  shared_.lock()->release_by = Deadline::after(clock_.now(), limits_.abort);
  nccl("ncclCommAbort", [&] { return library_->calls().ncclCommAbort(communicator); });
  if (given_up_) return;
  shared_.lock()->release_by.reset();
  communicator = nullptr;
}

}  // namespace paceline::nccl
