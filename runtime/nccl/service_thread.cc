// The life of a communicator, as its thread leads it; what it does of its operations: service_operations.cc.

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "runtime/collective/fault.h"
#include "runtime/cuda/polling.h"
#include "runtime/nccl/service.h"

namespace paceline::nccl {

absl::Status Service::given_up_status() {
  return absl::AbortedError("the communicator was given up");
}

Decision Service::step(Event event, ncclResult_t result) {
  State before = State::kGone;
  Decision decision;
  {
    auto shared = shared_.lock();
    before = shared->state;
    const bool keeps = !shared->ending && !unsettled_;
    decision = decide(before, event, result, keeps ? keeping_ : Keeping::kNever);
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
    switch (step(Event::kAnswer, result).action) {
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
      step(Event::kClosed);
      return why;
    }
    if (deadline.expired(clock_.now())) {
      step(Event::kExpired);
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
    step(Event::kAllShrunk);
    return true;
  }
  if (shrunk.ok()) {
    step(Event::kNotShrunk);
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
    // The others hear whose words these are.
    if (!collective::faulty_rank(status).has_value())
      status = collective::with_faulty_rank(std::move(status), rank_);
    fail(std::move(status)).IgnoreError();
    step(Event::kClosed);
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

// Stops what is under way, and leaves the rest.
void Service::revoke() {
  const Deadline deadline = Deadline::after(clock_.now(), limits_.revoke);
  ncclResult_t result =
      nccl("ncclCommRevoke", [&] { return library_->calls().ncclCommRevoke(comm_, NCCL_REVOKE_DEFAULT); });
  for (int asked = 0; !given_up_; ++asked) {
    if (step(Event::kAnswer, result).action != Action::kAsk) return;
    if (deadline.expired(clock_.now())) {
      step(Event::kExpired);
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
      shared->state = decide(shared->state, Event::kLetGo).next;
    } else if (!shared->offered && shared->kept_until->expired(clock_.now())) {
      shared->state = decide(shared->state, Event::kExpired).next;
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
      if (!given_up_) step(Event::kReleased);
    } else {
      log_.warning(str_cat("NCCL's communicator is aborted, it could not be left: ", left.message()));
    }
  }
  if (given_up_ || state() != State::kAborting) return;
  abort(parent_);
  if (!given_up_) abort(comm_);
  if (!given_up_) step(Event::kReleased);
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
