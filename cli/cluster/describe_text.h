#pragma once

// Everything about one job or run, as text. Pure.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/cluster/event_rows.h"
#include "cli/cluster/job_view.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

struct Described {
  JobView job;
  std::optional<api::TrainingJob> spec;  // absent: it can't be parsed,
  std::string spec_errors;               // and this is why
  std::vector<kube::SlimPod> pods;
  std::vector<EventView> events;  // the newest last
  std::string events_error;       // why there are none to show: the reader may not see them
  WallTime now{};
  std::string program;  // "paceline", "kubectl paceline": for hints
  std::string where;    // JobSource::where()
};

std::vector<std::string> describe_lines(const Described& described, const Terminal& terminal);

// The member that made the job fail, or start again the last time, below a line that says which of the two;
// empty: none did.
std::vector<std::string> fault_lines(const JobView& job);
// The newest check, "Stragglers:" and one line for each, shares, and replaced members; empty: there are none.
std::vector<std::string> straggler_lines(const JobView& job, WallTime now);

// What to do about what is wrong, a line each; the same words whoever asks.
std::vector<std::string> hints_for(const Described& described);

}  // namespace paceline::cli
