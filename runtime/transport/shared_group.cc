// Vocabulary: the phase word holds the number of complete phases in its upper 21 bits, the number of ranks
// that left in the next 10, and the abort bit. Everything that must wake a sleeper changes the word first, so
// a sleeper that looked before the change is refused by the kernel: no wake-up is lost. Cost of a phase: two
// atomic operations per rank, one wake-up call by the last one if anybody sleeps.

#include "runtime/transport/shared_group.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/status.h"
#include "runtime/transport/memory.h"

namespace paceline::transport {

namespace {

constexpr std::uint64_t kMagic = 0x31504f5247434150;  // "PACGROP1"
constexpr std::uint32_t kAborted = 1, kLeaveUnit = 2, kLeaveMask = 0x3ff * kLeaveUnit,
                        kPhaseUnit = 0x400 * kLeaveUnit;
static_assert(kMaxLocalRanks < 0x400);
constexpr std::size_t kFaultText = 400;
constexpr Duration kParkLimit =
    std::chrono::milliseconds(100);  // a parked rank looks at its deadline this often
enum FaultState : std::uint32_t { kNone = 0, kWriting = 1, kWritten = 2 };

// Whether phase a is b or later, in 21-bit arithmetic that wraps: no two ranks are ever more than one phase
// apart.
bool reached(std::uint32_t a, std::uint32_t b) {
  return ((a - b) & 0x1fffffu) < 0x100000u;
}

}  // namespace

struct SharedGroup::Header {
  std::uint64_t magic = kMagic;
  std::uint32_t world = 0;
  alignas(128) std::atomic<std::uint32_t> arrived{0};  // arrivals at all phases, wraps
  alignas(128) std::atomic<std::uint32_t> phase{0};
  alignas(128) std::atomic<std::uint32_t> sleepers{0};
  alignas(128) std::atomic<std::uint32_t> fault_state{kNone};
  std::int32_t fault_rank = -1;
  std::int32_t fault_code = 0;
  std::uint32_t fault_length = 0;
  char fault_text[kFaultText] = {};
};

struct alignas(128) SharedGroup::Slot {
  std::atomic<std::uint32_t> arrived_phase{0};
  std::atomic<std::uint32_t> left{0};
  alignas(64) Publication publications[2];
};

namespace {
constexpr std::size_t kPage = 4096;
}  // namespace

std::size_t SharedGroup::bytes_needed(int world_size) {
  const auto world = static_cast<std::size_t>(world_size);
  return round_up(sizeof(Header) + world * sizeof(Slot), kPage) + world * 2 * kStagingBytes;
}

void SharedGroup::format(std::span<std::byte> memory, int world_size) {
  PL_CHECK(world_size >= 1 && world_size <= kMaxLocalRanks, "ranks of one host are bounded");
  PL_CHECK(memory.size() >= bytes_needed(world_size), "the page must have room for all ranks");
  auto* header = new (memory.data()) Header;
  header->world = static_cast<std::uint32_t>(world_size);
  for (int r = 0; r < world_size; ++r) {
    new (memory.data() + sizeof(Header) + static_cast<std::size_t>(r) * sizeof(Slot)) Slot;
  }
}

absl::StatusOr<SharedGroup> SharedGroup::attach(std::span<std::byte> memory, int world_size, int rank,
                                                SpinPolicy spin) {
  PL_CHECK(rank >= 0 && rank < world_size, "a rank lies in its world");
  if (world_size > kMaxLocalRanks || memory.size() < bytes_needed(world_size)) {
    return absl::FailedPreconditionError(
        str_cat("the shared page has ", memory.size(), " bytes, too few for ", world_size, " ranks"));
  }
  auto* header = reinterpret_cast<Header*>(memory.data());
  if (header->magic != kMagic || header->world != static_cast<std::uint32_t>(world_size)) {
    return absl::FailedPreconditionError(str_cat("the shared page is not one of ", world_size, " ranks"));
  }
  SharedGroup group;
  group.header_ = header;
  group.base_ = memory.data();
  group.world_ = world_size;
  group.rank_ = rank;
  group.spin_ = spin;
  return group;
}

SharedGroup::Slot& SharedGroup::slot(int rank) const {
  return *reinterpret_cast<Slot*>(base_ + sizeof(Header) + static_cast<std::size_t>(rank) * sizeof(Slot));
}

Publication& SharedGroup::publication(int rank, int parity) const {
  return slot(rank).publications[parity];
}

std::byte* SharedGroup::staging(int rank, int parity) const {
  const std::size_t first = round_up(sizeof(Header) + static_cast<std::size_t>(world_) * sizeof(Slot), kPage);
  return base_ + first +
         (static_cast<std::size_t>(rank) * 2 + static_cast<std::size_t>(parity)) * kStagingBytes;
}

void SharedGroup::arrive() {
  ++phase_;
  slot(rank_).arrived_phase.store(phase_, std::memory_order_relaxed);
  const std::uint32_t before = header_->arrived.fetch_add(1, std::memory_order_acq_rel);
  if (before + 1 != phase_ * static_cast<std::uint32_t>(world_)) return;
  header_->phase.fetch_add(kPhaseUnit, std::memory_order_seq_cst);
  if (header_->sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(header_->phase);
}

bool SharedGroup::all_arrived() const {
  return reached(header_->phase.load(std::memory_order_acquire) / kPhaseUnit, phase_);
}

SharedGroup::Outcome SharedGroup::wait_for_all(const Clock& clock, Deadline deadline) {
  for (int turn = 0; turn < spin_.turns; ++turn) {
    if (all_arrived()) return Outcome::kAll;
    cpu_relax();
  }
  while (true) {
    header_->sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t word = header_->phase.load(std::memory_order_seq_cst);
    const bool complete = reached(word / kPhaseUnit, phase_);
    const bool aborted = (word & kAborted) != 0;
    const int missing = (word & kLeaveMask) != 0 && !complete ? first_missing() : -1;
    const bool ended = aborted || (missing >= 0 && has_left(missing));
    const Duration left = complete || ended ? Duration::zero() : deadline.remaining(clock.now());
    if (!complete && !ended && left > Duration::zero())
      futex_wait(header_->phase, word, std::min(left, kParkLimit));
    header_->sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (complete) return Outcome::kAll;
    if (ended) return Outcome::kEnded;
    if (left == Duration::zero()) return all_arrived() ? Outcome::kAll : Outcome::kExpired;
  }
}

int SharedGroup::first_missing() const {
  int missing = -1;
  for (int r = 0; r < world_; ++r) {
    if (reached(slot(r).arrived_phase.load(std::memory_order_acquire), phase_)) continue;
    if (has_left(r)) return r;  // one that will never come explains more than one that is late
    if (missing < 0) missing = r;
  }
  return missing;
}

void SharedGroup::abort(const Fault& fault) {
  std::uint32_t none = kNone;
  if (header_->fault_state.compare_exchange_strong(none, kWriting)) {
    header_->fault_rank = fault.blamed_rank;
    header_->fault_code = static_cast<std::int32_t>(fault.code);
    header_->fault_length = static_cast<std::uint32_t>(std::min(fault.text.size(), kFaultText));
    std::memcpy(header_->fault_text, fault.text.data(), header_->fault_length);
    header_->fault_state.store(kWritten, std::memory_order_release);
  }
  header_->phase.fetch_or(kAborted, std::memory_order_seq_cst);
  futex_wake_all(header_->phase);
}

void SharedGroup::leave(int rank) {
  if (slot(rank).left.exchange(1, std::memory_order_seq_cst) != 0) return;
  header_->phase.fetch_add(kLeaveUnit, std::memory_order_seq_cst);
  futex_wake_all(header_->phase);
}

bool SharedGroup::has_left(int rank) const {
  return slot(rank).left.load(std::memory_order_seq_cst) != 0;
}

std::optional<Fault> SharedGroup::fault() const {
  if ((header_->phase.load(std::memory_order_seq_cst) & kAborted) == 0) return std::nullopt;
  Fault fault;
  if (header_->fault_state.load(std::memory_order_acquire) != kWritten) {
    fault.text = "a peer ended the group";  // it died between its first word and its last
    return fault;
  }
  fault.blamed_rank = header_->fault_rank;
  fault.code = static_cast<absl::StatusCode>(header_->fault_code);
  fault.text.assign(header_->fault_text, std::min<std::size_t>(header_->fault_length, kFaultText));
  return fault;
}

}  // namespace paceline::transport
