#pragma once

// One run as lines of text: the live view of `run` and `top`, and the closing summary. Pure: a RunState in,
// lines out; on a terminal the live view is no wider and no higher than it.

#include <string>
#include <vector>

#include "cli/state/run_state.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

// Title, progress bar, loss and rates (on two lines where one is too short), then a line per member (at most
// kMaxMemberLines; the rest is summed in one line).
std::vector<std::string> render_dashboard(const RunState& state, const Terminal& terminal);
// The members' table alone.
std::vector<std::string> render_members(const RunState& state, const Terminal& terminal);
inline constexpr int kMaxMemberLines = 24;

// What a finished run came to: time to the target, goodput, bytes exchanged, and where model, checkpoint and
// logs are.
std::vector<std::string> render_summary(const RunState& state, const Terminal& terminal);

// One line for output that is not a terminal.
std::string render_progress_line(const RunState& state);

// Frames on a terminal: each replaces the one before. `draw` returns what is to be written.
class Frame {
 public:
  std::string draw(const std::vector<std::string>& lines);
  // Text to stay above the frame.
  std::string print_above(const std::vector<std::string>& lines);

 private:
  std::size_t height_ = 0;
};

}  // namespace paceline::cli
