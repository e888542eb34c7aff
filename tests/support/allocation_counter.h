#pragma once

// Counts what operator new gives, and refuses it. Link allocation_counter.cc into the test program, whose
// operators it replaces. Memory that C libraries take by malloc isn't seen. Thread-safe.

#include <cstddef>
#include <cstdint>

namespace paceline {

std::int64_t allocations_of_all_threads();
std::int64_t allocations_of_this_thread();
// All that this thread was ever given.
std::int64_t bytes_of_this_thread();

// While one lives, this thread gets no piece of memory larger than that: operator new throws std::bad_alloc.
class AllocationLimit {
 public:
  explicit AllocationLimit(std::size_t bytes);
  ~AllocationLimit();
  AllocationLimit(const AllocationLimit&) = delete;
  AllocationLimit& operator=(const AllocationLimit&) = delete;
};

}  // namespace paceline
