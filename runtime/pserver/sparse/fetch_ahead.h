#pragma once

// Memory that will be read soon is asked for, and not waited for.

#include <cstddef>

namespace paceline::pserver::sparse {

constexpr std::size_t kCacheLine = 64;

// The empty assembly is what keeps it: GCC takes a function that only fetches ahead for one without any
// effect, and leaves out the calls of it.
inline void fetch_ahead(const void* address) {
  __builtin_prefetch(address);
  asm volatile("" : : "r"(address));
}

}  // namespace paceline::pserver::sparse
