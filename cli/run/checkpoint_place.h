#pragma once

// Each place of checkpoints is one run's. A resumed run may get another checkpoint.location, once its
// checkpoints are there, and no other run's.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "cli/commands/job_file.h"
#include "cli/run/resume.h"
#include "cli/state/run_state.h"

namespace paceline::cli {

// The run of `runs` that has noted its newest checkpoint in the folder; null: none has.
const RunState* run_that_saved_in(const std::vector<RunState>& runs, const std::string& folder);

// The run of `runs` that goes on and saves in the folder; null: none does.
const RunState* run_that_saves_in(const std::vector<RunState>& runs, const std::string& folder);

// FAILED_PRECONDITION where a new run of the job would save among the checkpoints of an earlier training: how
// to go on with the one of `runs` that made them, or what else to do. `folder`: the job's place; `where`:
// RunStore::where().
absl::Status check_is_empty(const std::string& folder, const JobFile& job, const std::vector<RunState>& runs,
                            std::string_view where);

// The job's place has checkpoints, whole or not, and no run is there that has saved them, nor one of the job:
// `delete` has left them. A resume may take them for a new run.
bool holds_orphans(const JobFile& job, const std::vector<RunState>& runs);

// Says how many checkpoints the run leaves, and where, when its own folder is removed, or whose those are
// that lie where it would have saved; empty: there are none. `runs`: all, this one too. A run begins in an
// empty place: what lies in one that several have named is of the one that has saved there and began last.
std::string left_checkpoints_text(const RunState& run, const std::vector<RunState>& runs);

// A run goes on in another place than it has saved in, as its job now says: FAILED_PRECONDITION, with both
// places and what to do, where `newest`, which is in the new one, is not the run's newest. It is the run's
// where its manifest is that of the newest in the old place, or, where that is no longer there, where its
// step is the one that the run has noted and no other of `runs` has saved there.
absl::Status check_place(const RunState& earlier, const JobFile& job,
                         const std::optional<FoundCheckpoint>& newest, const std::vector<RunState>& runs);

}  // namespace paceline::cli
