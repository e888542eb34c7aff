#pragma once

// Collectives as data: what each rank sends, receives and combines, round by round. Pure: a schedule depends
// on rank, world size and element count alone, and is checked in memory for every world size by tests.
//
// Round k of one rank matches round k of its partners: what rank a sends to b in its round k, b receives from
// a in its own round k. Within a round the send and the receive go on at the same time; the next rounds may
// begin as far as their data allow (see Step).
//
// Partial sums: in ring, halving-doubling and recursive doubling, sums of some ranks travel, in the array's
// own type: fp16 and bf16 are widened, added in fp32 and rounded to nearest even at every hop. In the direct
// schedules contributions travel unchanged, and the owner of a block folds them in rank order, 0 to N-1, in
// fp32, rounding once: the same bits as with shared memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/collective/arguments.h"

namespace paceline::collective {

struct Range {
  std::size_t begin = 0, end = 0;  // elements
  std::size_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  bool operator==(const Range&) const = default;
};

inline Range block_of(std::size_t count, int world, int rank) {
  return {block_begin(count, world, rank), block_begin(count, world, rank + 1)};
}

enum class Action : std::uint8_t {
  kNone,
  kCopy,    // what is received replaces the range
  kReduce,  // ... is combined with the range: the lower rank's operand first
  kStage,   // ... is kept aside, under its sender's rank, for the next kFold
  kFold,  // nothing is received: the range becomes the fold of all ranks' contributions (staged ones and the
          // own) in rank order
};

struct Step {
  int send_to = -1;  // -1: nothing
  Range send;
  int receive_from = -1;
  Range receive;
  Action action = Action::kNone;
  bool complete = false;  // after this, the range holds all ranks' contributions: the mean divides here
};

// What one rank does.
struct Schedule {
  std::vector<Step> steps;
  std::size_t staging = 0;  // elements that a rank must be able to keep aside, per sender
};

// Which schedule: the public algorithms, with the direct one in its two forms.
enum class Method : std::uint8_t {
  kRing,               // 2(N-1) rounds, 2(N-1)/N * S bytes; for large messages
  kRecursiveDoubling,  // log2 N rounds, log2 N * S bytes; for small ones
  kHalvingDoubling,  // 2 log2 N rounds, 2(N-1)/N * S bytes; powers of two; between them, the rest send all to
                     // a partner first
  kDirectBlocks,     // everybody's block b to rank b, and back: 2 dependent rounds, 2(N-1)/N * S bytes; needs
                     // every pair connected
  kDirectWhole,      // everybody's all to everybody: 1 dependent round, (N-1) * S bytes; for tiny messages
};
const char* method_name(Method method);

// Elements of one pipelined piece of a block: rounds of a piece follow each other while the next piece is on
// its way.
inline constexpr std::size_t kNoPieces = static_cast<std::size_t>(-1);

Schedule all_reduce_schedule(Method method, int rank, int world, std::size_t count,
                             std::size_t piece = kNoPieces);
// By ring, or direct where every pair is connected.
Schedule reduce_scatter_schedule(bool direct, int rank, int world, std::size_t count,
                                 std::size_t piece = kNoPieces);
Schedule all_gather_schedule(bool direct, int rank, int world, std::size_t count);
// Binomial tree over ranks relative to the root: log2 N rounds.
Schedule broadcast_schedule(int rank, int world, std::size_t count, int root);
// Dissemination (Hensgen, Finkel, Manber 1988): log2 N rounds of empty messages.
Schedule barrier_schedule(int rank, int world);

// The ranks that the schedules of this world ever connect to `rank`: everybody up to kFullMesh members,
// beyond them ring neighbours and those at distances of powers of two. Sorted.
std::vector<int> partners_of(int rank, int world);
inline constexpr int kFullMesh = 32;

}  // namespace paceline::collective
