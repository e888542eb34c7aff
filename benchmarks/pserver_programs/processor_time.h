#pragma once

#include <ctime>

namespace bench {

// Of all threads of this process.
inline long long used_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000LL + used.tv_nsec;
}

}  // namespace bench
