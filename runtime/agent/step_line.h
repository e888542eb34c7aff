#pragma once

// One line by which a program tells of a step (docs/stragglers.md): "step=12 compute_ms=31.5 input_ms=2".
// Pure.

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "runtime/member/step_clock.h"

namespace paceline::agent {

inline constexpr std::size_t kMostLineBytes = 512;

struct StepLine {
  Step step = 0;  // steps done, this one included
  member::StepTimes times;
  std::string unknown;  // the first key that is not known here, and does no harm; empty: there is none
};

// INVALID_ARGUMENT, and what is wrong with it. A line has `step`, and at least one of the times that are the
// member's own (input_ms, compute_ms, update_ms). The whole step (total_ms) is at least the sum of its parts.
absl::StatusOr<StepLine> parse_step_line(std::string_view line);

}  // namespace paceline::agent
