#pragma once

// Which member of a new view gives the others the state that they begin with: one that holds the highest
// applied step. Members of one view differ by one step at most, since a step is applied by all of its view or
// taken again. Pure.

#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"

namespace paceline::trainer {

// One member's state as it enters a view; travels as kHeldWords words.
struct Held {
  std::int64_t step = -1;       // applied; -1: it holds no state, it has just begun
  std::int64_t saved_step = 0;  // of the newest checkpoint that it knows of
  std::int64_t evaluates = 0;   // 1: the evaluation that is due after that step is not over
};
inline constexpr std::size_t kHeldWords = sizeof(Held) / sizeof(std::int64_t);

// The state that all members have then.
struct Source {
  int rank = 0;  // the lowest of those that hold the highest step
  Step step = 0, saved_step = 0;
  bool evaluates = false;  // one of those has not finished the evaluation after it: all take it again
};

// The result is empty where nobody holds a state: rank 0 begins from a checkpoint or from the seed.
std::optional<Source> find_source(std::span<const Held> ranks);

}  // namespace paceline::trainer
