#pragma once

// Waiting on one word, also between processes: spin a little, then park in the kernel.
// Linux futexes on shared memory (futex(2)). Thread-safe; no errors: a wait may end early for any reason, and
// its caller looks again.

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace paceline::transport {

// Sleeps while `word` equals `expected`, at most `limit`.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Duration limit);

// Wakes all who sleep on `word`.
void futex_wake_all(const std::atomic<std::uint32_t>& word);

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How long to spin before parking. With no more members than cores, spinning saves the two context switches
// of a park (about 10 us); with more, every turn is taken from the one that is waited for.
struct SpinPolicy {
  int turns = 0;
  // `members` share this machine; cores are those that this process may run on.
  static SpinPolicy for_members(int members);
  static constexpr int kTurns = 4000;       // some tens of microseconds
  static constexpr int kCrowdedTurns = 50;  // about one microsecond
};

}  // namespace paceline::transport
