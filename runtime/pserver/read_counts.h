#pragma once

// What members of one host say to each other without messages, by numbers in shared memory. Each is written
// by its owner alone.
//
// How a server knows that a worker has read the weights: the worker counts its reads of each server in its
// own arena, which the servers map to read. Count s is server s's, and lies at s * kReadCountBytes; it rises
// after the read.
//
// How a worker knows how much it can read of weights that are being made: the server counts their elements in
// its own arena, in the order of its slab. The count is 0 before a worker hears of an update (kComing), and
// falls again for the next one alone, when all that was counted before is whole: whatever a worker finds
// there later is safe to read.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace paceline::pserver {

using ReadCount = std::atomic<std::uint64_t>;
static_assert(ReadCount::is_always_lock_free && sizeof(ReadCount) == sizeof(std::uint64_t));

inline constexpr std::size_t kReadCountBytes = 64;  // a cache line each

using MadeCount = std::atomic<std::uint64_t>;

}  // namespace paceline::pserver
