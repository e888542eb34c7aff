#pragma once

// The live view of `top`: frames of a run that goes on, here or on a cluster. One thread.

#include <functional>
#include <ostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/state/run_state.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

struct LiveView {
  Terminal terminal;
  std::function<absl::StatusOr<RunState>()> look;
  std::function<bool()> wait;              // for the next look; false: enough
  std::function<Terminal()> size = {};     // asked before each frame, where it may change
  std::function<std::string()> note = {};  // a line below the frame; empty: none
  bool once = false;
};

// Until the run ends, nobody reads, wait() says so, or look() fails.
absl::Status show_live(std::ostream& out, const LiveView& view);

}  // namespace paceline::cli
