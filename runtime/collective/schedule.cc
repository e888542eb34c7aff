// Vocabulary: block b is what rank b owns of the array; a piece is a part of a block; `left` and `right` are
// the ring's neighbours. Ring: in round k of the reduce-scatter rank r passes block r-k-1 to the right and
// adds the left's block r-k-2, so that it ends with its own block r complete; in round k of the all-gather it
// passes block r-k. (Patarasuk, Yuan 2009.) Halving-doubling: distances N/2, N/4, ..., 1 halve the range; the
// same distances backwards double it. (Thakur, Rabenseifner 2005.)

#include "runtime/collective/schedule.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/check.h"

namespace paceline::collective {

namespace {

int wrap(int rank, int world) {
  return ((rank % world) + world) % world;
}

// Piece `index` of `pieces` of block b.
Range piece_of(std::size_t count, int world, int b, std::size_t index, std::size_t pieces) {
  const Range block = block_of(count, world, b);
  const auto parts = static_cast<int>(pieces), part = static_cast<int>(index);
  return {block.begin + block_begin(block.size(), parts, part),
          block.begin + block_begin(block.size(), parts, part + 1)};
}

std::size_t pieces_for(std::size_t count, int world, std::size_t piece) {
  const std::size_t longest = block_of(count, world, 0).size();
  if (piece == kNoPieces || piece == 0 || longest <= piece) return 1;
  return (longest + piece - 1) / piece;
}

Step exchange(int to, Range send, int from, Range receive, Action action, bool complete = false) {
  return {to, send, from, receive, action, complete};
}

// ---- ring
// -------------------------------------------------------------------------------------------------------------------------

void ring_reduce_scatter(Schedule& schedule, int rank, int world, std::size_t count, std::size_t index,
                         std::size_t pieces) {
  const int left = wrap(rank - 1, world), right = wrap(rank + 1, world);
  for (int k = 0; k < world - 1; ++k) {
    schedule.steps.push_back(exchange(right, piece_of(count, world, wrap(rank - k - 1, world), index, pieces),
                                      left, piece_of(count, world, wrap(rank - k - 2, world), index, pieces),
                                      Action::kReduce, k == world - 2));
  }
}

void ring_all_gather(Schedule& schedule, int rank, int world, std::size_t count, std::size_t index,
                     std::size_t pieces) {
  const int left = wrap(rank - 1, world), right = wrap(rank + 1, world);
  for (int k = 0; k < world - 1; ++k) {
    schedule.steps.push_back(exchange(right, piece_of(count, world, wrap(rank - k, world), index, pieces),
                                      left, piece_of(count, world, wrap(rank - k - 1, world), index, pieces),
                                      Action::kCopy));
  }
}

// ---- direct
// -----------------------------------------------------------------------------------------------------------------------

void direct_scatter(Schedule& schedule, int rank, int world, std::size_t count, std::size_t index,
                    std::size_t pieces) {
  const Range mine = piece_of(count, world, rank, index, pieces);
  for (int k = 1; k < world; ++k) {
    const int to = wrap(rank + k, world), from = wrap(rank - k, world);
    schedule.steps.push_back(
        exchange(to, piece_of(count, world, to, index, pieces), from, mine, Action::kStage));
  }
  schedule.steps.push_back(exchange(-1, {}, -1, mine, Action::kFold, true));
  schedule.staging = std::max(schedule.staging, block_of(count, world, 0).size() / pieces + 1);
}

void direct_gather(Schedule& schedule, int rank, int world, std::size_t count, std::size_t index,
                   std::size_t pieces) {
  const Range mine = piece_of(count, world, rank, index, pieces);
  for (int k = 1; k < world; ++k) {
    const int to = wrap(rank + k, world), from = wrap(rank - k, world);
    schedule.steps.push_back(
        exchange(to, mine, from, piece_of(count, world, from, index, pieces), Action::kCopy));
  }
}

void direct_whole(Schedule& schedule, int rank, int world, std::size_t count) {
  const Range all{0, count};
  for (int k = 1; k < world; ++k) {
    schedule.steps.push_back(
        exchange(wrap(rank + k, world), all, wrap(rank - k, world), all, Action::kStage));
  }
  schedule.steps.push_back(exchange(-1, {}, -1, all, Action::kFold, true));
  schedule.staging = count;
}

// ---- powers of two
// ----------------------------------------------------------------------------------------------------------------

// With world not a power of two, the ranks from `core` on hand their data to rank - core before, and get the
// result after.
struct PowerOfTwo {
  int core = 1;
  bool extra = false;  // this rank is beyond the core
  int partner = -1;    // the extra's core rank, the core rank's extra; -1: none
};

PowerOfTwo split(int rank, int world) {
  PowerOfTwo power;
  power.core = static_cast<int>(std::bit_floor(static_cast<unsigned>(world)));
  power.extra = rank >= power.core;
  if (power.extra)
    power.partner = rank - power.core;
  else if (rank + power.core < world)
    power.partner = rank + power.core;
  return power;
}

void fold_extras(Schedule& schedule, const PowerOfTwo& power, int world, Range all) {
  if (power.core == world) return;
  Step step;
  if (power.extra)
    step = exchange(power.partner, all, -1, {}, Action::kNone);
  else if (power.partner >= 0)
    step = exchange(-1, {}, power.partner, all, Action::kReduce, power.core == 1);
  schedule.steps.push_back(step);
}

void give_extras(Schedule& schedule, const PowerOfTwo& power, int world, Range all) {
  if (power.core == world) return;
  Step step;
  if (power.extra)
    step = exchange(-1, {}, power.partner, all, Action::kCopy);
  else if (power.partner >= 0)
    step = exchange(power.partner, all, -1, {}, Action::kNone);
  schedule.steps.push_back(step);
}

void recursive_doubling(Schedule& schedule, int rank, int world, std::size_t count) {
  const PowerOfTwo power = split(rank, world);
  const Range all{0, count};
  fold_extras(schedule, power, world, all);
  for (int distance = 1; distance < power.core; distance *= 2) {
    const int peer = rank ^ distance;
    const bool last = distance * 2 == power.core;
    schedule.steps.push_back(power.extra ? Step{} : exchange(peer, all, peer, all, Action::kReduce, last));
  }
  give_extras(schedule, power, world, all);
}

void halving_doubling(Schedule& schedule, int rank, int world, std::size_t count) {
  const PowerOfTwo power = split(rank, world);
  const Range all{0, count};
  fold_extras(schedule, power, world, all);
  // Blocks [low, low + size) of the core's are this rank's at each level.
  const auto blocks = [&](int low, int size) {
    return Range{block_begin(count, power.core, low), block_begin(count, power.core, low + size)};
  };
  std::vector<Step> doubling;
  int low = 0;
  for (int size = power.core / 2; size >= 1; size /= 2) {
    if (power.extra) {
      schedule.steps.push_back({});
      doubling.push_back({});
      continue;
    }
    const int peer = rank ^ size;
    const bool upper = (rank & size) != 0;
    const Range kept = blocks(upper ? low + size : low, size), given = blocks(upper ? low : low + size, size);
    schedule.steps.push_back(exchange(peer, given, peer, kept, Action::kReduce, size == 1));
    doubling.push_back(exchange(peer, kept, peer, given, Action::kCopy));
    if (upper) low += size;
  }
  schedule.steps.insert(schedule.steps.end(), doubling.rbegin(), doubling.rend());
  give_extras(schedule, power, world, all);
}

}  // namespace

const char* method_name(Method method) {
  static constexpr const char* kNames[] = {"ring", "recursive doubling", "halving-doubling", "direct",
                                           "direct, whole"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Method::kDirectWhole) + 1);
  return method <= Method::kDirectWhole ? kNames[static_cast<std::size_t>(method)] : "?";
}

Schedule all_reduce_schedule(Method method, int rank, int world, std::size_t count, std::size_t piece) {
  PL_CHECK(rank >= 0 && rank < world, "a rank lies in its world");
  Schedule schedule;
  if (world == 1) return schedule;
  switch (method) {
    case Method::kRing: {
      const std::size_t pieces = pieces_for(count, world, piece);
      for (std::size_t i = 0; i < pieces; ++i) {
        ring_reduce_scatter(schedule, rank, world, count, i, pieces);
        ring_all_gather(schedule, rank, world, count, i, pieces);
      }
      break;
    }
    case Method::kDirectBlocks: {
      const std::size_t pieces = pieces_for(count, world, piece);
      direct_scatter(schedule, rank, world, count, 0, pieces);
      for (std::size_t i = 1; i < pieces; ++i) {  // the next piece is on its way while this one is handed out
        direct_scatter(schedule, rank, world, count, i, pieces);
        direct_gather(schedule, rank, world, count, i - 1, pieces);
      }
      direct_gather(schedule, rank, world, count, pieces - 1, pieces);
      break;
    }
    case Method::kDirectWhole:
      direct_whole(schedule, rank, world, count);
      break;
    case Method::kRecursiveDoubling:
      recursive_doubling(schedule, rank, world, count);
      break;
    case Method::kHalvingDoubling:
      halving_doubling(schedule, rank, world, count);
      break;
  }
  return schedule;
}

Schedule reduce_scatter_schedule(bool direct, int rank, int world, std::size_t count, std::size_t piece) {
  Schedule schedule;
  if (world == 1) return schedule;
  const std::size_t pieces = pieces_for(count, world, piece);
  for (std::size_t i = 0; i < pieces; ++i) {
    if (direct)
      direct_scatter(schedule, rank, world, count, i, pieces);
    else
      ring_reduce_scatter(schedule, rank, world, count, i, pieces);
  }
  return schedule;
}

Schedule all_gather_schedule(bool direct, int rank, int world, std::size_t count) {
  Schedule schedule;
  if (world == 1) return schedule;
  if (direct)
    direct_gather(schedule, rank, world, count, 0, 1);
  else
    ring_all_gather(schedule, rank, world, count, 0, 1);
  return schedule;
}

Schedule broadcast_schedule(int rank, int world, std::size_t count, int root) {
  Schedule schedule;
  const int relative = wrap(rank - root, world);
  const Range all{0, count};
  for (int distance = 1; distance < world; distance *= 2) {
    Step step;
    if (relative < distance && relative + distance < world) {
      step = exchange(wrap(rank + distance, world), all, -1, {}, Action::kNone);
    } else if (relative >= distance && relative < 2 * distance) {
      step = exchange(-1, {}, wrap(rank - distance, world), all, Action::kCopy);
    }
    schedule.steps.push_back(step);
  }
  return schedule;
}

Schedule barrier_schedule(int rank, int world) {
  Schedule schedule;
  for (int distance = 1; distance < world; distance *= 2) {
    schedule.steps.push_back(
        exchange(wrap(rank + distance, world), {}, wrap(rank - distance, world), {}, Action::kCopy));
  }
  return schedule;
}

std::vector<int> partners_of(int rank, int world) {
  std::vector<int> partners;
  for (int other = 0; other < world; ++other) {
    if (other == rank) continue;
    const int ahead = wrap(other - rank, world), behind = wrap(rank - other, world);
    const auto power = [](int distance) { return std::has_single_bit(static_cast<unsigned>(distance)); };
    const bool butterfly = power(other ^ rank) || power(ahead) || power(behind);
    const PowerOfTwo half = split(rank, world);
    if (world <= kFullMesh || butterfly || half.partner == other) partners.push_back(other);
  }
  return partners;
}

}  // namespace paceline::collective
