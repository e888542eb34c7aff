#pragma once

// Parameter servers and what their workers' gradients come to, as tables below the members'. Pure.

#include <string>
#include <vector>

#include "cli/state/run_state.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

// A line per server (load, queue, bytes per second, and of sparse tables rows, memory, evictions, hottest
// rows) and one per worker (staleness, dropped,
// waits), each table after an empty line; at most `width` wide and `most` lines high: what does not fit is
// left out. Empty where the job has no servers, or none has told anything yet.
std::vector<std::string> render_servers(const RunState& state, const Terminal& terminal, int width, int most);

}  // namespace paceline::cli
