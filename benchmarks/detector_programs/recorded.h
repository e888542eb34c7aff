#pragma once

// The steps of members that a run has recorded (docs/metrics.md), through our detector and the rules of
// others. Pure.
//
// Our detector gets it as `paceline explain RUN --stragglers` has it: by the lines, thinned as they are. The
// others' rules want a step of all members at once: of a step that a member's line was left out of, the
// member's next one counts.

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace paceline::detector {

// A member is called slow, or is so no more.
struct Call {
  Step step = 0;        // the newest that was known
  std::string member;   // "worker-0"; empty: all
  std::string finding;  // ours: "Slow"; empty: the rule knows of nothing else
  bool slow = true;
};

struct Calls {
  std::string rule;
  std::vector<Call> calls;
};

// The calls of each rule, ours first. Empty: no member has told of a step.
std::vector<Calls> judge_recording(std::string_view metrics);

}  // namespace paceline::detector
