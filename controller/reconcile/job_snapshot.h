#pragma once

// A job as the last pass over it left it, with the moments at which something of it was seen to change, which
// no status holds: for metrics. Pure.

#include <optional>

#include "base/clock.h"
#include "controller/api/types.h"

namespace paceline::reconcile {

struct JobSnapshot {
  api::TrainingJob job;                 // its status is the newest
  std::optional<double> learning_rate;  // of the last step
  WallTime progressed{};                // its step changed, or it began to wait for its members
  std::optional<WallTime> checkpoint;   // its last one was told, or it began to go on from there
};

// `before`: of the pass before, null after the first one of this controller. What is not new then keeps its
// moment.
JobSnapshot next_snapshot(const JobSnapshot* before, api::TrainingJob job, WallTime now);

}  // namespace paceline::reconcile
