#pragma once

// What `paceline run` says while it runs: a live view on a terminal, plain lines in a pipe, or one JSON
// object per line (--output json, docs/cli.md). All calls come from the command's one thread.

#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "cli/state/run_state.h"
#include "cli/view/terminal.h"
#include "controller/coordinator/report.h"

namespace paceline::cli {

class RunOutput {
 public:
  virtual ~RunOutput() = default;
  virtual void started(const RunState& state) = 0;
  // Often: about ten times a second. Each output decides what of it is shown.
  virtual void progress(const RunState& state) = 0;
  virtual void view(const coordinator::ViewRecord& view) = 0;
  virtual void view_change(const api::ViewChange& change) = 0;
  virtual void straggler(const coordinator::StragglerChange& change) = 0;
  // It is decided, or has ended.
  virtual void replacement(const api::StragglerReplacement& replacement) = 0;
  virtual void preflight(const api::Preflight& result) = 0;
  virtual void rebalance(const api::Rebalance& rebalance) = 0;
  virtual void evaluation(const RunState& state, const coordinator::EvaluationRecord& evaluation) = 0;
  virtual void checkpoint(const coordinator::CheckpointRecord& checkpoint) = 0;
  virtual void note(std::string_view message) = 0;  // "stopping: ctrl-C", ...
  virtual void finished(const RunState& state) = 0;
};

// On a terminal: the frame is redrawn in place, notes stay above it.
std::unique_ptr<RunOutput> make_live_output(std::ostream& out, int fd);
// A line every few seconds, and one for each thing that happens.
std::unique_ptr<RunOutput> make_plain_output(std::ostream& out);
// On a terminal, what JSON leaves of control characters is sanitize() (base/sanitize.h).
std::unique_ptr<RunOutput> make_json_output(std::ostream& out, bool terminal);

}  // namespace paceline::cli
