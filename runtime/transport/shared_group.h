#pragma once

// The page that the members of one view share on one host: phases (barriers), what each rank published,
// staging memory, and the record of the first fault. It lies in a memfd between processes and on the heap
// between threads; the code is the same.
//
// Idea: one collective costs as few phases as it can, because with more members than cores every phase is a
// context switch. A rank arrives by one atomic add; the last to arrive flips the phase word and wakes all
// sleepers, so each member sleeps at most once and is woken exactly when everybody has come.
//
// Publications and staging are double-buffered by parity: what was written under one parity before a phase
// may be read until the reader arrives at a later phase, and is written again two publications later, when
// all must have arrived there.
//
// Threads: one thread per rank calls arrive, wait_for_all and publish; abort, leave and fault may be called
// by any.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/limits.h"
#include "runtime/transport/futex.h"

namespace paceline::transport {

inline constexpr int kMaxLocalRanks = kMaxGroupMembers;
inline constexpr std::size_t kStagingBytes = std::size_t{512} << 10;  // per rank and parity

// What a rank says of its part in a collective; all ranks compare.
struct Publication {
  std::uint64_t operation = 0;  // kind, type, reduction, root: equal on all ranks
  std::uint64_t count = 0;      // elements: equal on all ranks
  std::uint64_t address =
      0;  // offset in the rank's arena (between threads: the address itself); valid where `registered`
  std::uint64_t registered = 0;
};

// Why the group ended: the first fault stays.
struct Fault {
  int blamed_rank = -1;  // who is to blame, -1 where nobody is
  absl::StatusCode code = absl::StatusCode::kUnavailable;
  std::string text;
};

class SharedGroup {
 public:
  static std::size_t bytes_needed(int world_size);
  // Makes a page in zeroed memory of bytes_needed(world_size) bytes, aligned to 128.
  static void format(std::span<std::byte> memory, int world_size);

  // A view of a formatted page for one rank. The memory outlives it. FAILED_PRECONDITION when the page is not
  // one, or for another world.
  static absl::StatusOr<SharedGroup> attach(std::span<std::byte> memory, int world_size, int rank,
                                            SpinPolicy spin);

  int rank() const { return rank_; }
  int world_size() const { return world_; }

  // This rank's turn: flips the parity, and returns it. What it then writes to staging(rank(), parity) and
  // publication(rank(), parity) is visible to all after the next phase.
  int next_parity() { return parity_ ^= 1; }
  Publication& publication(int rank, int parity) const;
  std::byte* staging(int rank, int parity) const;

  // Announces that this rank has come to its next phase, and does not wait.
  void arrive();
  enum class Outcome { kAll, kExpired, kEnded };
  // Waits until all ranks arrived at the phase that this rank arrived at last. A phase that all have reached
  // is kAll, even if the group has ended since. kEnded: see fault(), or a rank left without arriving.
  Outcome wait_for_all(const Clock& clock, Deadline deadline);
  // Whether wait_for_all would return kAll at once.
  bool all_arrived() const;
  // A rank that has not arrived at this rank's phase, -1 if none.
  int first_missing() const;

  // Ends the group for all, and wakes all. The first fault stays.
  void abort(const Fault& fault);
  // Says that this rank will not come to another phase; wakes all, so that those who wait for it give up.
  void leave(int rank);
  bool has_left(int rank) const;
  // The fault that ended the group.
  std::optional<Fault> fault() const;

 private:
  struct Header;
  struct Slot;
  SharedGroup() = default;
  Slot& slot(int rank) const;

  Header* header_ = nullptr;
  std::byte* base_ = nullptr;
  int world_ = 0;
  int rank_ = 0;
  int parity_ = 0;
  std::uint32_t phase_ = 0;  // the last one that this rank arrived at
  SpinPolicy spin_;
};

}  // namespace paceline::transport
