#pragma once

// The answer to what follows when a member dies: the coordinator's policy and the planner's rules answer for
// a model of the job in which all members train. Nothing is done. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "controller/api/types.h"
#include "controller/plan/observed.h"

namespace paceline::reconcile {

struct WhatIf {
  Role role = Role::kWorker;
  int index = 0;

  enum class Then : std::uint8_t {
    kJobFails,
    kAllBeginAgain,
    kOthersStay,      // pods of its own program, of which nobody here knows more
    kTrainingGoesOn,  // it is not missed, or was alone
    kOthersGoOn,      // `left` of them
    kOthersWait,      // likewise, with what they have trained: too few for a view
    kStandbyTakesPlace,
  } then = Then::kJobFails;
  // Training goes on, or begins again, from there; nothing: of no concern.
  enum class From : std::uint8_t { kHere, kCheckpoint, kStepZero };
  std::optional<From> from;
  std::string reason;             // kJobFails: the status' reason
  bool may_be_replaced = false;   // kJobFails: with restartPolicy OnFailure the others would go on
  bool may_begin_again = false;   // kJobFails: with restartPolicy OnFailure all would begin again
  int left = 0;                   // who train, without it
  std::optional<Duration> again;  // until another one comes, or all begin again; nothing: nobody does

  bool operator==(const WhatIf&) const = default;
};
// "the 3 others go on, and no step is lost; another worker-0 comes at once"
std::string text_of(const WhatIf& answer);

// For the first member of each role, killed at `now`. The job's restarts so far count, of its status. Empty:
// the job has ended, or is suspended.
std::vector<WhatIf> if_a_member_dies(const api::TrainingJob& job, const plan::Limits& limits, WallTime now);

// A line for each: "If a member died now:", and then "  worker-0  the 3 others go on, ...".
std::vector<std::string> what_if_lines(const std::vector<WhatIf>& all);

}  // namespace paceline::reconcile
