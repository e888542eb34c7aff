#pragma once

// A schedule made ready to run: which steps must wait for which. Pure.

#include <cstdint>
#include <vector>

#include "runtime/collective/schedule.h"

namespace paceline::collective {

// Two cursors go through the steps in order, one sending, one receiving. Step s may send as far as step
// send_after[s] has been received (and combined), and may write to the array what it received as far as step
// write_after[s] has been sent. -1: at once.
struct Plan {
  Schedule schedule;
  std::vector<int> send_after;
  std::vector<int> write_after;
};

Plan make_plan(Schedule schedule);

}  // namespace paceline::collective
