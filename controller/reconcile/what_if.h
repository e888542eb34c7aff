#pragma once

// The answer to what follows when a member dies: the coordinator's policy and the planner's rules answer for a model of the
// job in which all members train. Nothing is done. Pure.

#include <string>
#include <vector>

#include "controller/api/types.h"
#include "controller/plan/observed.h"

namespace paceline::reconcile {

struct WhatIf {
  Role role = Role::kWorker;
  int index = 0;
  std::string text;
};

// For the first member of each role, killed at `now`. The job's restarts so far count, of its status. Empty:
// the job has ended, or is suspended.
std::vector<WhatIf> if_a_member_dies(const api::TrainingJob& job, const plan::Limits& limits, WallTime now);

// A line for each: "If a member died now:", and then "  worker-0  the 3 others go on, ...".
std::vector<std::string> what_if_lines(const std::vector<WhatIf>& all);

}  // namespace paceline::reconcile
