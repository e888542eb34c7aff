#pragma once

// With how many threads processors compute. Pure.

#include <cstdint>

namespace paceline::cli {

// Of fewer parameters one thread is enough, and more of them may be a loss: threads wait for one another
// after each operation, where other programs need the processors, too, for a time slice. With one thread a
// pass of 5 million parameters over 64 tokens took 13 ms; with two, among ten programs on two processors, 20
// times that.
inline constexpr std::uint64_t kParametersForThreads = 10'000'000;

// `asked`: by the user; 0: not.
inline int threads_for(std::uint64_t parameters, int asked, int processors) {
  if (asked > 0) return asked;
  return parameters < kParametersForThreads ? 1 : processors;
}

}  // namespace paceline::cli
