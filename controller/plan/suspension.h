#pragma once

// A suspended job: at which step it stands once its members have left, and what it will go on from. Pure.

#include <optional>
#include <string>

#include "base/ids.h"
#include "controller/plan/observed.h"

namespace paceline::plan {

struct Suspension {
  Step step = 0;                   // that its members had reached
  std::optional<Step> saved;       // of the newest checkpoint; nothing: there is none
  std::optional<LastSave> failed;  // the newest save, where it failed
  bool keeps_checkpoints = true;   // they stay where its pods go

  Step resumes_at() const { return keeps_checkpoints ? saved.value_or(0) : 0; }
  Step behind() const { return step - resumes_at(); }  // steps that will be taken again
  bool operator==(const Suspension&) const = default;
};

// `report`: of the coordinator that the members have left; `status`: with its last words.
Suspension suspension_of(const Observed& observed, const JobReport& report, const api::Status& status);

// "suspended at step 120; step 120 could not be saved: write ...: No space left on device; it will go on from
// the checkpoint of step 100, 20 steps behind"
std::string text_of(const Suspension& suspension);

}  // namespace paceline::plan
