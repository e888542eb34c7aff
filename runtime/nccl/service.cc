#include "runtime/nccl/service.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/text.h"

namespace paceline::nccl {

namespace {

using collective::Call;

constexpr std::chrono::milliseconds kSlice{5};  // of a wait, until the clock is looked at
// What the thread is given to tell of a deadline by itself: it knows more.
constexpr std::chrono::milliseconds kGrace{20};

Keeping keeping_of(const Setup& setup) {
  const Library::Calls& calls = setup.library->calls();
  if (!setup.keeps || calls.ncclCommShrink == nullptr) return Keeping::kNever;
  return calls.ncclCommRevoke == nullptr ? Keeping::kIdle : Keeping::kAlways;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Service>> Service::make(Setup setup, const Clock& clock, Deadline opening) {
  PL_ASSIGN_OR_RETURN(cuda::Stream stream,
                      cuda::Stream::create(setup.context, cuda::Stream::Priority::kGreatest));
  std::vector<Operation> operations;
  operations.reserve(kMostInFlight);
  for (std::size_t i = 0; i < kMostInFlight; ++i) {
    PL_ASSIGN_OR_RETURN(cuda::Event ready, cuda::Event::create(setup.context, cuda::Event::Kind::kOrder));
    PL_ASSIGN_OR_RETURN(cuda::Event done, cuda::Event::create(setup.context, cuda::Event::Kind::kOrder));
    operations.push_back(Operation(std::move(ready), std::move(done)));
  }
  return std::shared_ptr<Service>(
      new Service(std::move(setup), clock, opening, std::move(stream), std::move(operations)));
}

Service::Service(Setup setup, const Clock& clock, Deadline opening, cuda::Stream stream,
                 std::vector<Operation> operations)
    : library_(setup.library),
      context_(std::move(setup.context)),
      clock_(clock),
      log_(std::move(setup.log)),
      limits_(setup.limits),
      opening_(opening),
      keeping_(keeping_of(setup)),
      rank_(setup.host->rank()),
      world_(setup.host->world_size()),
      generation_(setup.host->generation()),
      host_(std::move(setup.host)),
      stream_(std::move(stream)),
      operations_(std::move(operations)),
      agreement_(**host_.lock()) {}

void Service::begin_from(Origin origin, ncclComm_t parent) {
  parent_ = parent;
  auto shared = shared_.lock();
  shared->state = parent == nullptr ? State::kInit : State::kShrinking;
  shared->with_parent = parent != nullptr;
  shared->origin = std::move(origin);
}

std::string Service::origin() {
  const Origin origin = shared_.lock()->origin;
  return origin.shrinks ? str_cat("shrunk from view ", origin.view.value)
                        : str_cat("made anew: ", origin.why);
}

// ---- those who wait

absl::Status Service::fail(absl::Status status) {
  // The host knows which peer it is.
  if (absl::IsUnavailable(status)) {
    if (absl::Status host = host_closed(); !host.ok()) status = std::move(host);
  }
  if (closing_.close(std::move(status))) {
    if (const auto host = *host_.lock(); host != nullptr) host->close(closing_.reason());
  }
  shared_.lock();  // wakes all
  return closing_.reason();
}

void Service::close(absl::Status reason) {
  static_cast<void>(fail(std::move(reason)));
}

absl::Status Service::closed() {
  return interrupted();
}

absl::Status Service::interrupted() {
  if (closing_.is_closed()) return closing_.reason();
  absl::Status host = host_closed();
  return host.ok() ? host : fail(std::move(host));
}

absl::Status Service::host_closed() {
  const auto host = *host_.lock();
  return host == nullptr ? absl::OkStatus() : host->closed();
}

// In slices, because the clock may be another than that of the system.
template <typename Condition>
absl::Status Service::await(Condition condition, Deadline deadline, const char* what) {
  for (;;) {
    const Duration left = deadline.remaining(clock_.now());
    bool expired = false;
    {
      auto shared = shared_.lock_when([&](const Shared& s) { return condition(s) || closing_.is_closed(); },
                                      std::min<Duration>(left, kSlice));
      if (condition(*shared)) return absl::OkStatus();
      expired = shared->release_by.has_value() && shared->release_by->expired(clock_.now());
    }
    if (closing_.is_closed()) return closing_.reason();
    if (!expired && !deadline.expired(clock_.now())) continue;
    const char* const calling = calling_;
    return fail(absl::DeadlineExceededError(
        str_cat("rank ", rank_, ": ", what, " by its deadline",
                calling == nullptr ? "" : str_cat("; ", calling, " of NCCL has not returned"))));
  }
}

absl::Status Service::wait_until_open() {
  return await([](const Shared& s) { return s.state == State::kReady; }, Deadline(opening_.at() + kGrace),
               "NCCL's communicator was not ready");
}

absl::StatusOr<std::uint64_t> Service::post(const Call& call, cuda::Stream* after, Deadline deadline) {
  PL_RETURN_IF_ERROR(closed());
  absl::Status valid = collective::check_call(call, world_);
  if (valid.ok() && !nccl_type(call.dtype).has_value())
    valid = absl::InvalidArgumentError(str_cat("NCCL has no elements of ", dtype_name(call.dtype)));
  if (!valid.ok()) return fail(std::move(valid));
  PL_RETURN_IF_ERROR(await([](const Shared& s) { return s.posted - s.done < kMostInFlight; }, deadline,
                           "no earlier operation was done"));
  const std::uint64_t number = shared_.lock()->posted + 1;
  Operation& made = operation(number);
  if (after != nullptr) {
    PL_RETURN_IF_ERROR(context_->enter());
    PL_RETURN_IF_ERROR(made.ready.record(*after));
  }
  made.call = call;
  made.number = number;
  made.deadline = deadline;
  made.after = after != nullptr;
  shared_.lock()->posted = number;
  return number;
}

absl::Status Service::wait(std::uint64_t number, Deadline deadline) {
  return await([number](const Shared& s) { return s.done >= number; }, deadline, "an operation was not done");
}

absl::Status Service::wait_for_end(std::uint64_t number, Deadline deadline) {
  return wait(number, Deadline(deadline.at() + kGrace));
}

absl::Status Service::join(cuda::Stream& stream, Deadline deadline) {
  PL_RETURN_IF_ERROR(closed());
  const std::uint64_t last = shared_.lock()->posted;
  if (last == 0) return absl::OkStatus();
  PL_RETURN_IF_ERROR(await([last](const Shared& s) { return s.begun >= last; }, deadline,
                           "an operation was not handed to the GPU"));
  PL_RETURN_IF_ERROR(context_->enter());
  return stream.wait_for(operation(last).done);
}

collective::Counters Service::counters() const {
  return {.bytes_sent = bytes_,
          .header_bytes_sent = 0,
          .operations = finished_,
          .wait_ns = wait_ns_,
          .transfer_ns = transfer_ns_};
}

bool Service::end() {
  const Duration ending = closing_.is_closed() ? Duration{} : limits_.leaving;
  const Duration stopping = may_be_kept() ? limits_.revoke : Duration{};
  const int aborts = shared_.lock()->with_parent ? 2 : 1;
  let_go(/*for_good=*/true);
  return give_up_unless([](const Shared& s) { return s.ended; },
                        Deadline::after(clock_.now(), ending + stopping + aborts * limits_.abort + kGrace));
}

bool Service::keep() {
  let_go(/*for_good=*/false);
  return give_up_unless([](const Shared& s) { return s.ended || s.stays; },
                        Deadline::after(clock_.now(), limits_.revoke + limits_.abort + kGrace));
}

// What has not begun waits for others, who may never come to it.
void Service::let_go(bool for_good) {
  bool waits = false;
  {
    auto shared = shared_.lock();
    shared->let_go = true;
    if (for_good) shared->ending = true;
    waits = shared->posted > shared->begun;
  }
  if (waits)
    fail(absl::AbortedError("its use ended before all ranks had come to its operations")).IgnoreError();
}

std::optional<Parent> Service::offer() {
  auto shared = shared_.lock();
  if (shared->state != State::kKept) return std::nullopt;
  shared->offered = true;
  return Parent{generation_, rank_, world_};
}

// Its thread does nothing with it while it is kept.
ncclComm_t Service::hand_over() {
  auto shared = shared_.lock();
  PL_CHECK(shared->offered && shared->state == State::kKept, "what is handed over was offered");
  shared->state = decide(shared->state, Event::kHandedOver).next;
  return comm_;
}

// In good order where nothing has closed it: peers may still be at what is done here.
void Service::leave_view() {
  static_cast<void>(closing_.close(absl::AbortedError("the communicator's use has ended")));
  std::exchange(*host_.lock(), nullptr).reset();
}

template <typename Condition>
bool Service::give_up_unless(Condition condition, Deadline deadline) {
  bool stuck = false;
  for (;;) {
    auto shared = shared_.lock_when(condition, std::min<Duration>(deadline.remaining(clock_.now()), kSlice));
    if (condition(*shared)) break;
    if (!deadline.expired(clock_.now())) continue;
    shared->given_up = true;
    shared->state = decide(shared->state, Event::kStuck).next;
    stuck = true;
    break;
  }
  static_cast<void>(closing_.close(absl::AbortedError("the communicator was ended")));
  if (!stuck) return true;
  const char* const calling = calling_;
  log_.error(str_cat("NCCL's communicator of rank ", rank_,
                     " is given up, and its memory with it: ", calling == nullptr ? "its thread" : calling,
                     " does not return; this process should end"));
  // Inside a call of NCCL the thread comes to see that it was given up before all else. The host's
  // communicator belongs to a fabric, which may go now.
  if (calling != nullptr) leave_view();
  return false;
}

}  // namespace paceline::nccl
