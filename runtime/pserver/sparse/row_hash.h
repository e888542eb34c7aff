#pragma once

// Where a row belongs. h = mix64(id), SplitMix64's finaliser (base/rng.h): its upper half says which server
// has the row, its lower half where that server's index has it. Pure.

#include <cstdint>

#include "base/rng.h"
#include "runtime/pserver/sparse/table_spec.h"

namespace paceline::pserver::sparse {

inline std::uint64_t hash_of(RowId id) {
  return mix64(id);
}

// floor((h >> 32) * servers / 2^32). REQUIRES: servers > 0.
inline int server_of_hash(std::uint64_t hash, int servers) {
  return static_cast<int>(((hash >> 32) * static_cast<std::uint64_t>(servers)) >> 32);
}
inline int server_of(RowId id, int servers) {
  return server_of_hash(hash_of(id), servers);
}

}  // namespace paceline::pserver::sparse
