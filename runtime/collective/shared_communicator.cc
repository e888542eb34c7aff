#include "runtime/collective/shared_communicator.h"

#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/collective/tuning.h"

namespace paceline::collective {

namespace {

using transport::kStagingBytes;
using transport::Publication;
using Outcome = transport::SharedGroup::Outcome;

}  // namespace

SharedCommunicator::SharedCommunicator(SharedWiring wiring, const Clock& clock)
    : wiring_(std::move(wiring)),
      clock_(clock),
      inputs_(static_cast<std::size_t>(wiring_.group.world_size())),
      data_(inputs_.size()) {
  wiring_.names.resize(inputs_.size());
}

SharedCommunicator::~SharedCommunicator() {
  wiring_.group.leave(rank());
}

absl::Status SharedCommunicator::run(const Call& call, Deadline deadline) {
  PL_RETURN_IF_ERROR(closed());
  const TimePoint began = clock_.now();
  Operation operation{call, deadline};
  operation.divisor = call.op == ReduceOp::kMean ? world_size() : 1;
  absl::Status status = check_call(call, world_size());
  if (status.ok() && world_size() > 1) status = dispatch(operation);
  if (!status.ok()) {
    close(status);
    return closed();
  }
  operations_.fetch_add(1, std::memory_order_relaxed);
  wait_ns_.fetch_add(operation.waited.count(), std::memory_order_relaxed);
  transfer_ns_.fetch_add((clock_.now() - began - operation.waited).count(), std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status SharedCommunicator::dispatch(Operation& operation) {
  const Call& call = operation.call;
  const std::size_t bytes = call.bytes();
  if (call.kind == Kind::kBarrier) return first_phase(operation, wiring_.group.next_parity());
  if (call.kind == Kind::kAllReduce && bytes <= shared_one_shot_bytes(world_size()))
    return one_shot(operation);
  if (bytes > kStagingBytes / 2) {
    // Worth a phase of its own to learn whether all ranks' data is registered.
    const int parity = wiring_.group.next_parity();
    PL_RETURN_IF_ERROR(first_phase(operation, parity));
    bool registered = true;
    for (int r = 0; r < world_size(); ++r)
      registered = registered && wiring_.group.publication(r, parity).registered != 0;
    if (registered) {
      PL_RETURN_IF_ERROR(find_data(operation, parity));
      return direct(operation);
    }
  }
  switch (call.kind) {
    case Kind::kAllReduce:
      return staged_all_reduce(operation);
    case Kind::kReduceScatter:
      return staged_reduce_scatter(operation);
    case Kind::kAllGather:
      return staged_all_gather(operation);
    case Kind::kBroadcast:
      return staged_broadcast(operation);
    case Kind::kBarrier:
      break;
  }
  return absl::InternalError("unknown collective");
}

// ---- phases
// -----------------------------------------------------------------------------------------------------------------------

absl::Status SharedCommunicator::phase(Operation& operation) {
  wiring_.group.arrive();
  if (wiring_.group.all_arrived()) return absl::OkStatus();
  const TimePoint began = clock_.now();
  const Outcome outcome = wiring_.group.wait_for_all(clock_, operation.deadline);
  operation.waited += clock_.now() - began;
  return outcome == Outcome::kAll ? absl::OkStatus() : failure(operation, outcome);
}

// A phase whose publications are compared, the first time in an operation.
absl::Status SharedCommunicator::first_phase(Operation& operation, int parity) {
  if (operation.announced) return phase(operation);
  publish(operation, parity);
  PL_RETURN_IF_ERROR(phase(operation));
  operation.announced = true;
  return check_publications(operation, parity);
}

void SharedCommunicator::publish(Operation& operation, int parity) {
  const Call& call = operation.call;
  Publication& mine = wiring_.group.publication(rank(), parity);
  mine.operation = call.fingerprint();
  mine.count = call.count;
  const bool threads = wiring_.peers.empty();
  const bool in_arena = wiring_.arena != nullptr && wiring_.arena->contains(call.data, call.bytes()) &&
                        wiring_.arena->offset_of(call.data) < wiring_.seen_of_arena;
  mine.registered = threads || in_arena ? 1 : 0;
  if (threads) mine.address = reinterpret_cast<std::uintptr_t>(call.data);
  if (!threads && in_arena) mine.address = wiring_.arena->offset_of(call.data);
}

absl::Status SharedCommunicator::check_publications(const Operation& operation, int parity) const {
  const Publication& mine = wiring_.group.publication(rank(), parity);
  for (int r = 0; r < world_size(); ++r) {
    const Publication& theirs = wiring_.group.publication(r, parity);
    if (theirs.operation == mine.operation && theirs.count == mine.count) continue;
    return absl::InvalidArgumentError(
        str_cat(name_rank(r, wiring_.names[static_cast<std::size_t>(r)]), " called ",
                kind_name(static_cast<Kind>(theirs.operation & 0xff)), " of ", theirs.count,
                " elements while rank ", rank(), " called ", describe(operation.call),
                "; all ranks must make the same calls in the same order"));
  }
  return absl::OkStatus();
}

// Where the registered data of each rank lies.
absl::Status SharedCommunicator::find_data(const Operation& operation, int parity) {
  for (int r = 0; r < world_size(); ++r) {
    const auto index = static_cast<std::size_t>(r);
    const Publication& theirs = wiring_.group.publication(r, parity);
    if (r == rank()) {
      data_[index] = operation.call.data;
    } else if (wiring_.peers.empty()) {
      data_[index] = reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(theirs.address));
    } else {
      const PeerMemory& peer = wiring_.peers[index];
      const std::size_t bytes = operation.call.bytes();
      if (bytes > peer.bytes || theirs.address > peer.bytes - bytes) {
        return absl::InvalidArgumentError(str_cat(name_rank(r, wiring_.names[index]), " published ", bytes,
                                                  " bytes at ", theirs.address, " of an arena of ",
                                                  peer.bytes));
      }
      data_[index] = peer.base + theirs.address;
    }
  }
  return absl::OkStatus();
}

absl::Status SharedCommunicator::failure(const Operation& operation, Outcome outcome) const {
  if (outcome == Outcome::kEnded) {
    absl::Status fault = adopt_fault();
    if (!fault.ok()) return fault;
  }
  const int missing = wiring_.group.first_missing();
  const std::string who =
      missing < 0 ? "a rank" : name_rank(missing, wiring_.names[static_cast<std::size_t>(missing)]);
  absl::Status status = outcome == Outcome::kEnded
                            ? absl::UnavailableError(str_cat(who, " has left; rank ", rank(),
                                                             " waited for it in ", describe(operation.call)))
                            : absl::DeadlineExceededError(
                                  str_cat(who, " did not come to ", describe(operation.call), " in time"));
  return missing < 0 ? status : with_faulty_rank(std::move(status), missing);
}

// ---- ending
// -----------------------------------------------------------------------------------------------------------------------

absl::Status SharedCommunicator::adopt_fault() const {
  const std::optional<transport::Fault> fault = wiring_.group.fault();
  if (!fault.has_value()) return absl::OkStatus();
  absl::Status status(fault->code, fault->text);
  return fault->blamed_rank < 0 ? status : with_faulty_rank(std::move(status), fault->blamed_rank);
}

void SharedCommunicator::close(absl::Status reason) {
  if (!closing_.close(std::move(reason))) return;
  const absl::Status why = closing_.reason();
  transport::Fault fault;
  fault.code = why.code();
  fault.text = std::string(why.message());
  fault.blamed_rank = faulty_rank(why).value_or(-1);
  if (fault.code == absl::StatusCode::kAborted) {  // to the others, this rank is one that went away
    fault.code = absl::StatusCode::kUnavailable;
    fault.blamed_rank = rank();
    fault.text =
        str_cat(name_rank(rank(), wiring_.names[static_cast<std::size_t>(rank())]), " closed: ", fault.text);
  }
  wiring_.group.abort(fault);
}

// The page is the view's, and goes with it.
void SharedCommunicator::retire() {
  if (!closed().ok() || !closing_.close(absl::AbortedError(kRetired)) || watch_ == nullptr) return;
  std::vector<transport::MetPeer> links;
  for (transport::PeerWatch::Peer& peer : watch_->take_peers()) {
    transport::MetPeer& link = links.emplace_back();
    link.rank = peer.rank;
    link.channels.push_back(std::move(peer.control));
  }
  wiring_.keep(std::move(links));
}

absl::Status SharedCommunicator::closed() const {
  if (!closing_.is_closed()) {
    absl::Status fault = adopt_fault();
    if (fault.ok()) return fault;
    closing_.close(std::move(fault));
  }
  return closing_.reason();
}

absl::Status SharedCommunicator::watch(std::vector<transport::PeerWatch::Peer> peers) {
  if (peers.empty()) return absl::OkStatus();
  PL_ASSIGN_OR_RETURN(watch_,
                      transport::PeerWatch::make(std::move(peers), [this](const transport::PeerEvent& event) {
                        if (event.kind == transport::PeerEvent::Kind::kLost)
                          peer_lost(event.rank, event.fault.text);
                      }));
  return watch_->begin();
}

void SharedCommunicator::peer_lost(int rank, const std::string& how) {
  if (wiring_.group.has_left(rank) || wiring_.group.fault().has_value()) return;
  close(with_faulty_rank(
      absl::UnavailableError(
          str_cat(name_rank(rank, wiring_.names[static_cast<std::size_t>(rank)]), " is gone: ", how)),
      rank));
}

Counters SharedCommunicator::counters() const {
  Counters counters;
  counters.bytes_sent = bytes_sent_.load(std::memory_order_relaxed);
  counters.operations = operations_.load(std::memory_order_relaxed);
  counters.wait_ns = wait_ns_.load(std::memory_order_relaxed);
  counters.transfer_ns = transfer_ns_.load(std::memory_order_relaxed);
  counters.kept_links = wiring_.kept_links;
  return counters;
}

}  // namespace paceline::collective
