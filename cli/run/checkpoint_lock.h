#pragma once

// Of the runs on this machine, one at a time saves its checkpoints in a place: two that begin at once both
// see it empty, and would mix their histories there.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "cli/state/run_state.h"

namespace paceline::cli {

// Makes the folder and holds it until the descriptor is closed, or its process ends, however that ends;
// leaves no file in it (flock(2) of the folder). FAILED_PRECONDITION: another run holds it, or no checkpoint
// can be written there, as a first folder in it shows. Where its file system has no locks nothing is held,
// which is no error. `runs`: of this state folder, the other run may be among them.
absl::StatusOr<UniqueFd> lock_checkpoints(const std::string& folder, const std::vector<RunState>& runs);

}  // namespace paceline::cli
