#pragma once

// Counts what operator new gives. Link allocation_counter.cc into the test program, whose operators it
// replaces. Memory that C libraries take by malloc isn't seen. Thread-safe.

#include <cstdint>

namespace paceline::testing {

std::int64_t allocations_of_all_threads();
std::int64_t allocations_of_this_thread();

}  // namespace paceline::testing
