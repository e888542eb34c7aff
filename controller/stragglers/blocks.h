#pragma once

// From the steps of a view's members to blocks of steps that all of them have told of. Pure.
//
// Members tell of their steps at different moments, and thin them out where they are many. A block is a range
// of steps, about kBlock long; it is complete once every member has told of its last step or a later one. So
// a block's evidence is of the same steps for all, a job of short steps takes as long to judge as one of long
// steps, and a burst of a moment stays one block.
//
// Left out: the first kWarmUp steps of a view, and steps in which the member saved a checkpoint.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace paceline::stragglers {

inline constexpr Duration kBlock = std::chrono::milliseconds(200);
inline constexpr int kWarmUp = 5;
inline constexpr std::size_t kMostPending = 4096;  // steps of a member that wait for the others' words

// One step of one member, on its own clock. Steps are counted as "applied so far".
struct StepSample {
  Step step = 0;
  Duration input{}, compute{}, update{}, wait{}, transfer{}, checkpoint{};
  double work = 0;  // samples or tokens of its own; 0: it does not say
};

// A member's means over the steps of a block, in seconds.
struct Row {
  int steps = 0;  // 0: it told of none of them, and the rest is 0
  double input = 0, compute = 0, update = 0, wait = 0, transfer = 0, work = 0;
  double own() const { return input + compute + update; }
};

struct Block {
  Step begin = 0, end = 0;  // the steps before `end`
  std::vector<Row> rows;    // by rank
};

class Blocks {
 public:
  void begin_view(int members);
  // `rank`'s next step. Steps that do not rise are ignored.
  void add(int rank, const StepSample& sample);
  // The next complete block, if there is one.
  std::optional<Block> take();

 private:
  struct Told {
    std::deque<StepSample> pending;
    Step newest = -1;
  };
  void lose_pending();
  Duration time_until(Step last) const;
  Row row_of(Told& told) const;

  std::vector<Told> members_;
  std::optional<Step> begin_;  // of the next block; empty: no step of the view is known
  Step steps_ = 1;             // of a block
};

}  // namespace paceline::stragglers
