#pragma once

// Each place of checkpoints is one run's. A resumed run may get another checkpoint.location, once its
// checkpoints are there, and no other run's.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/commands/job_file.h"
#include "cli/run/resume.h"
#include "cli/state/run_state.h"

namespace paceline::cli {

// The run of `runs` that has noted its newest checkpoint in the folder; null: none has.
const RunState* run_that_saved_in(const std::vector<RunState>& runs, const std::string& folder);

// A run goes on in another place than it has saved in, as its job now says: FAILED_PRECONDITION, with both
// places and what to do, where `newest`, which is in the new one, is not the run's newest. It is the run's
// where its manifest is that of the newest in the old place, or, where that is no longer there, where its
// step is the one that the run has noted and no other of `runs` has saved there.
absl::Status check_place(const RunState& earlier, const JobFile& job,
                         const std::optional<FoundCheckpoint>& newest, const std::vector<RunState>& runs);

}  // namespace paceline::cli
