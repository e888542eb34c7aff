#pragma once

// The steps of a run that no checkpoint holds, in words. Pure.

#include <string>

#include "base/ids.h"

namespace paceline::cli {

// "step 5000 was saved: 3518 steps are lost", of a run that stood at `step`; "nothing was saved: all its
// steps are lost" where `saved` is 0; empty where it is `step` or more.
std::string lost_steps_text(Step step, Step saved);

}  // namespace paceline::cli
