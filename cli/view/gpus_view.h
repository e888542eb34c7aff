#pragma once

// How the members' GPUs are, as a table below the members'. Pure.

#include <string>
#include <vector>

#include "cli/state/run_state.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

// A line per member with a GPU (which it is, its time for a step, load, memory, clocks and what slows it
// down, heat, power, errors), after an empty line; at most `width` wide and `most` lines high: what does not
// fit is left out. Empty where no member has told of one.
std::vector<std::string> render_gpus(const RunState& state, const Terminal& terminal, int width, int most);

}  // namespace paceline::cli
