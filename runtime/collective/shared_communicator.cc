// Cost, with N ranks and S bytes: one_shot 1 phase, N*S bytes read per rank; direct all-reduce 3 phases, S +
// S(N-1)/N read and S written; staged all-reduce 2 phases per chunk, and S more written and read.

#include "runtime/collective/shared_communicator.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/collective/reduce.h"
#include "runtime/collective/schedule.h"
#include "runtime/collective/tuning.h"

namespace paceline::collective {

namespace {

using transport::kStagingBytes;
using transport::Publication;
using Outcome = transport::SharedGroup::Outcome;

// Results of this size and more would only push each other out of the caches.
constexpr std::size_t kStreamBytes = std::size_t{4} << 20;

}  // namespace

struct SharedCommunicator::Operation {
  Call call;
  Deadline deadline;
  Duration waited{};
  bool announced = false;  // this rank's publication was checked against the others'
  std::size_t element = dtype_bytes(call.dtype);
  int divisor = 1;
};

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
  const bool in_arena = wiring_.arena != nullptr && wiring_.arena->contains(call.data, call.bytes());
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

// ---- paths
// ------------------------------------------------------------------------------------------------------------------------

absl::Status SharedCommunicator::one_shot(Operation& operation) {
  const Call& call = operation.call;
  const int parity = wiring_.group.next_parity();
  if (call.count > 0) std::memcpy(wiring_.group.staging(rank(), parity), call.data, call.bytes());
  PL_RETURN_IF_ERROR(first_phase(operation, parity));
  for (int r = 0; r < world_size(); ++r)
    inputs_[static_cast<std::size_t>(r)] = wiring_.group.staging(r, parity);
  reduce({{&call.data, 1}, inputs_, call.count, call.dtype, call.op, operation.divisor});
  const auto others = static_cast<std::uint64_t>(world_size() - 1);
  count_traffic(others * call.bytes(), others * call.bytes());
  return absl::OkStatus();
}

absl::Status SharedCommunicator::direct(Operation& operation) {
  const Call& call = operation.call;
  const auto world = static_cast<std::size_t>(world_size());
  const Range mine = block_of(call.count, world_size(), rank());
  const std::size_t own_bytes = mine.size() * operation.element, other_bytes = call.bytes() - own_bytes;
  if (call.kind == Kind::kAllReduce || call.kind == Kind::kReduceScatter) {
    for (std::size_t r = 0; r < world; ++r) inputs_[r] = data_[r] + mine.begin * operation.element;
    std::byte* output = call.data + mine.begin * operation.element;
    reduce({{&output, 1},
            inputs_,
            mine.size(),
            call.dtype,
            call.op,
            operation.divisor,
            own_bytes >= kStreamBytes});
    count_traffic(other_bytes, own_bytes * (world - 1));
    PL_RETURN_IF_ERROR(phase(operation));
  }
  if (call.kind == Kind::kAllReduce || call.kind == Kind::kAllGather) {
    for (std::size_t step = 1; step < world; ++step) {  // not all from the same rank at once
      const auto r = static_cast<int>((static_cast<std::size_t>(rank()) + step) % world);
      const Range theirs = block_of(call.count, world_size(), r);
      const std::size_t at = theirs.begin * operation.element, bytes = theirs.size() * operation.element;
      if (bytes >= kStreamBytes)
        copy_streaming(call.data + at, data_[static_cast<std::size_t>(r)] + at, bytes);
      else if (bytes > 0)
        std::memcpy(call.data + at, data_[static_cast<std::size_t>(r)] + at, bytes);
    }
    count_traffic(own_bytes * (world - 1), other_bytes);
    PL_RETURN_IF_ERROR(phase(operation));
  }
  if (call.kind == Kind::kBroadcast) {
    if (rank() != call.root)
      copy_streaming(call.data, data_[static_cast<std::size_t>(call.root)], call.bytes());
    if (rank() == call.root)
      count_traffic(call.bytes() * (world - 1), 0);
    else
      count_traffic(0, call.bytes());
    PL_RETURN_IF_ERROR(phase(operation));
  }
  return absl::OkStatus();
}

absl::Status SharedCommunicator::staged_all_reduce(Operation& operation) {
  const Call& call = operation.call;
  const std::size_t chunk = kStagingBytes / operation.element;
  for (std::size_t begin = 0; begin < call.count || begin == 0; begin += chunk) {
    const std::size_t count = std::min(chunk, call.count - begin);
    std::byte* const data = call.data + begin * operation.element;
    const int parity = wiring_.group.next_parity();
    std::byte* const staging = wiring_.group.staging(rank(), parity);
    std::memcpy(staging, data, count * operation.element);
    PL_RETURN_IF_ERROR(first_phase(operation, parity));
    // Nobody else reads this rank's own block of its staging memory: the result can lie there.
    const Range mine = block_of(count, world_size(), rank());
    const std::size_t at = mine.begin * operation.element;
    for (int r = 0; r < world_size(); ++r)
      inputs_[static_cast<std::size_t>(r)] = wiring_.group.staging(r, parity) + at;
    std::byte* const outputs[] = {staging + at, data + at};
    reduce({outputs, inputs_, mine.size(), call.dtype, call.op, operation.divisor});
    PL_RETURN_IF_ERROR(phase(operation));
    for (int r = 0; r < world_size(); ++r) {
      if (r == rank()) continue;
      const Range theirs = block_of(count, world_size(), r);
      const std::size_t from = theirs.begin * operation.element;
      std::memcpy(data + from, wiring_.group.staging(r, parity) + from, theirs.size() * operation.element);
    }
    const std::uint64_t own_bytes = mine.size() * operation.element,
                        other_bytes = count * operation.element - own_bytes;
    const auto others = static_cast<std::uint64_t>(world_size() - 1);
    count_traffic(other_bytes + others * own_bytes, other_bytes + others * own_bytes);
  }
  return absl::OkStatus();
}

// Staging memory is cut into one part per rank: part b holds a piece of block b.
absl::Status SharedCommunicator::staged_reduce_scatter(Operation& operation) {
  const Call& call = operation.call;
  const std::size_t piece = std::max<std::size_t>(kStagingBytes / operation.element / inputs_.size(), 1);
  const std::size_t longest = block_of(call.count, world_size(), 0).size();
  const Range mine = block_of(call.count, world_size(), rank());
  for (std::size_t done = 0; done < longest || done == 0; done += piece) {
    const int parity = wiring_.group.next_parity();
    std::byte* const staging = wiring_.group.staging(rank(), parity);
    std::uint64_t sent = 0;
    for (int b = 0; b < world_size(); ++b) {
      const Range block = block_of(call.count, world_size(), b);
      if (done >= block.size()) continue;
      const std::size_t bytes = std::min(piece, block.size() - done) * operation.element;
      std::memcpy(staging + static_cast<std::size_t>(b) * piece * operation.element,
                  call.data + (block.begin + done) * operation.element, bytes);
      if (b != rank()) sent += bytes;
    }
    PL_RETURN_IF_ERROR(first_phase(operation, parity));
    if (done >= mine.size()) {
      count_traffic(sent, 0);
      continue;
    }
    const std::size_t at = static_cast<std::size_t>(rank()) * piece * operation.element;
    for (int r = 0; r < world_size(); ++r)
      inputs_[static_cast<std::size_t>(r)] = wiring_.group.staging(r, parity) + at;
    std::byte* const output = call.data + (mine.begin + done) * operation.element;
    const std::size_t count = std::min(piece, mine.size() - done);
    reduce({{&output, 1}, inputs_, count, call.dtype, call.op, operation.divisor});
    count_traffic(sent, count * operation.element * (inputs_.size() - 1));
  }
  return absl::OkStatus();
}

absl::Status SharedCommunicator::staged_all_gather(Operation& operation) {
  const Call& call = operation.call;
  const std::size_t piece = kStagingBytes / operation.element;
  const std::size_t longest = block_of(call.count, world_size(), 0).size();
  const Range mine = block_of(call.count, world_size(), rank());
  for (std::size_t done = 0; done < longest || done == 0; done += piece) {
    const int parity = wiring_.group.next_parity();
    std::uint64_t sent = 0, received = 0;
    if (done < mine.size()) {
      const std::size_t bytes = std::min(piece, mine.size() - done) * operation.element;
      std::memcpy(wiring_.group.staging(rank(), parity), call.data + (mine.begin + done) * operation.element,
                  bytes);
      sent = bytes * (inputs_.size() - 1);
    }
    PL_RETURN_IF_ERROR(first_phase(operation, parity));
    for (int r = 0; r < world_size(); ++r) {
      const Range theirs = block_of(call.count, world_size(), r);
      if (r == rank() || done >= theirs.size()) continue;
      const std::size_t bytes = std::min(piece, theirs.size() - done) * operation.element;
      std::memcpy(call.data + (theirs.begin + done) * operation.element, wiring_.group.staging(r, parity),
                  bytes);
      received += bytes;
    }
    count_traffic(sent, received);
  }
  return absl::OkStatus();
}

absl::Status SharedCommunicator::staged_broadcast(Operation& operation) {
  const Call& call = operation.call;
  const std::size_t piece = kStagingBytes / operation.element;
  for (std::size_t done = 0; done < call.count || done == 0; done += piece) {
    const int parity = wiring_.group.next_parity();
    const std::size_t bytes = std::min(piece, call.count - done) * operation.element;
    std::byte* const data = call.data + done * operation.element;
    if (rank() == call.root && bytes > 0) std::memcpy(wiring_.group.staging(rank(), parity), data, bytes);
    PL_RETURN_IF_ERROR(first_phase(operation, parity));
    if (rank() == call.root) {
      count_traffic(bytes * (inputs_.size() - 1), 0);
    } else {
      if (bytes > 0) std::memcpy(data, wiring_.group.staging(call.root, parity), bytes);
      count_traffic(0, bytes);
    }
  }
  return absl::OkStatus();
}

void SharedCommunicator::count_traffic(std::uint64_t sent, std::uint64_t received) {
  bytes_sent_.fetch_add(sent, std::memory_order_relaxed);
  bytes_received_.fetch_add(received, std::memory_order_relaxed);
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
  counters.bytes_received = bytes_received_.load(std::memory_order_relaxed);
  counters.operations = operations_.load(std::memory_order_relaxed);
  counters.wait_ns = wait_ns_.load(std::memory_order_relaxed);
  counters.transfer_ns = transfer_ns_.load(std::memory_order_relaxed);
  return counters;
}

}  // namespace paceline::collective
