#pragma once

// From what the coordinator and the controller know to what people see. Pure.

#include <cstdint>
#include <optional>

#include "cli/state/run_state.h"
#include "controller/api/types.h"
#include "controller/coordinator/report.h"

namespace paceline::cli {

// Brings `state` up to date with `report`; phase, reason and message are the controller's and stay as they
// are. `seconds_before`: what the run has taken before this session, which times go on from.
void apply_report(const coordinator::Report& report, RunState& state, double seconds_before = 0);

// What a session that took no step leaves as the run's earlier ones had it: how far, how fast and how well it
// was trained, on what, and what that made.
void keep_earlier(const RunState& earlier, RunState& state);

// A resumed run's job begins with this: how far it was, by which steps that are lost are counted, and the
// sums that go on.
api::Progress progress_to_go_on(const api::Progress& earlier);

// Phase, reason, message, and the samples that were left out, from the job's status. A run that has ended has
// no time to go.
void apply_status(const api::Status& status, RunState& state);

// The state of a run that is being deleted: what lies in its folder goes.
RunState without_own_paths(RunState state);

// The text says what an evaluator of a training that has succeeded did not do: it told of no checkpoint,
// not even of one whose step those who train had evaluated themselves (of which there is no second event), or
// not of the last one, since it took too long, was gone, or did not answer. Empty: nothing. `where`:
// RunStore::where().
std::string evaluator_note(const api::Spec& spec, const coordinator::Report& report, const RunState& state,
                           std::string_view where);

// Samples per second between two step records of rank 0, on its own clock (heartbeats come too seldom to
// measure a short run by). Nothing where no time or no step lies between them.
std::optional<double> mean_rate(const coordinator::StepRecord& first, const coordinator::StepRecord& last,
                                double samples_per_step);

}  // namespace paceline::cli
