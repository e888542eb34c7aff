// The ways of data through shared memory.
//
// Cost, with N ranks and S bytes: one_shot 1 phase, N*S bytes read per rank; direct all-reduce 3 phases, S +
// S(N-1)/N read and S written; staged all-reduce 2 phases per chunk, and S more written and read.

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "runtime/collective/reduce.h"
#include "runtime/collective/schedule.h"
#include "runtime/collective/shared_communicator.h"

namespace paceline::collective {

namespace {

using transport::kStagingBytes;

// Results of this size and more would only push each other out of the caches.
constexpr std::size_t kStreamBytes = std::size_t{4} << 20;

}  // namespace

absl::Status SharedCommunicator::one_shot(Operation& operation) {
  const Call& call = operation.call;
  const int parity = wiring_.group.next_parity();
  if (call.count > 0) std::memcpy(wiring_.group.staging(rank(), parity), call.data, call.bytes());
  PL_RETURN_IF_ERROR(first_phase(operation, parity));
  for (int r = 0; r < world_size(); ++r)
    inputs_[static_cast<std::size_t>(r)] = wiring_.group.staging(r, parity);
  reduce({{&call.data, 1}, inputs_, call.count, call.dtype, call.op, operation.divisor});
  const auto others = static_cast<std::uint64_t>(world_size() - 1);
  bytes_sent_ += others * call.bytes();
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
    bytes_sent_ += other_bytes;
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
    bytes_sent_ += own_bytes * (world - 1);
    PL_RETURN_IF_ERROR(phase(operation));
  }
  if (call.kind == Kind::kBroadcast) {
    if (rank() != call.root)
      copy_streaming(call.data, data_[static_cast<std::size_t>(call.root)], call.bytes());
    if (rank() == call.root) bytes_sent_ += call.bytes() * (world - 1);
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
    bytes_sent_ += other_bytes + others * own_bytes;
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
    bytes_sent_ += sent;
    if (done >= mine.size()) continue;
    const std::size_t at = static_cast<std::size_t>(rank()) * piece * operation.element;
    for (int r = 0; r < world_size(); ++r)
      inputs_[static_cast<std::size_t>(r)] = wiring_.group.staging(r, parity) + at;
    std::byte* const output = call.data + (mine.begin + done) * operation.element;
    const std::size_t count = std::min(piece, mine.size() - done);
    reduce({{&output, 1}, inputs_, count, call.dtype, call.op, operation.divisor});
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
    if (done < mine.size()) {
      const std::size_t bytes = std::min(piece, mine.size() - done) * operation.element;
      std::memcpy(wiring_.group.staging(rank(), parity), call.data + (mine.begin + done) * operation.element,
                  bytes);
      bytes_sent_ += bytes * (inputs_.size() - 1);
    }
    PL_RETURN_IF_ERROR(first_phase(operation, parity));
    for (int r = 0; r < world_size(); ++r) {
      const Range theirs = block_of(call.count, world_size(), r);
      if (r == rank() || done >= theirs.size()) continue;
      const std::size_t bytes = std::min(piece, theirs.size() - done) * operation.element;
      std::memcpy(call.data + (theirs.begin + done) * operation.element, wiring_.group.staging(r, parity),
                  bytes);
    }
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
      bytes_sent_ += bytes * (inputs_.size() - 1);
    } else if (bytes > 0) {
      std::memcpy(data, wiring_.group.staging(call.root, parity), bytes);
    }
  }
  return absl::OkStatus();
}

}  // namespace paceline::collective
