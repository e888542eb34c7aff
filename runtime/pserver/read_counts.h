#pragma once

// How a server knows, without a message, that a worker of its host has read the weights: the worker counts
// its reads of each server in its own arena, which the servers map to read. Count s is server s's, and lies
// at s * kReadCountBytes; it is written by the worker alone, after the read.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace paceline::pserver {

using ReadCount = std::atomic<std::uint64_t>;
static_assert(ReadCount::is_always_lock_free && sizeof(ReadCount) == sizeof(std::uint64_t));

inline constexpr std::size_t kReadCountBytes = 64;  // a cache line each

}  // namespace paceline::pserver
