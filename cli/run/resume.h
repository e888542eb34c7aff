#pragma once

// Whether a job may go on with an earlier run of it: looked at before anything of that run is touched.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/commands/job_file.h"
#include "cli/state/run_state.h"
#include "runtime/checkpoint/checkpoint_store.h"

namespace paceline::cli {

struct FoundCheckpoint {
  std::string path;  // .../step-000000123
  checkpoint::Progress progress;
  std::vector<std::string> refused;  // newer ones whose manifests are damaged, and how: "step-000000124: ..."
  std::uint64_t bytes = 0;           // of its files
};

// Where the job saves its checkpoints, were `run_folder` its run's; empty where it saves none, or what it
// says can't be read.
std::string checkpoint_folder(const JobFile& job, const std::string& run_folder);
// The folder that the run has saved in: that of the newest one that it has noted, else as its job.yaml says.
// Empty: that is not known.
std::string checkpoint_folder(const RunState& run);

// The newest complete one in a folder; none where nothing of one is there. Errors: one that may be it can't
// be read, for what is no fault of it (checkpoint::is_no_fault_of_it); else FAILED_PRECONDITION, DATA_LOSS:
// all are damaged, or what is in the folder's place is none.
absl::StatusOr<std::optional<FoundCheckpoint>> newest_in(const std::string& folder);
// Reads the checkpoints in the folder of the newest one, as members would, where it has at most kMostRead
// bytes: FAILED_PRECONDITION or DATA_LOSS where none of them is whole, else as newest_in(). A larger one is
// for its members alone to read.
inline constexpr std::uint64_t kMostRead = std::uint64_t{64} << 20;
absl::Status check_readable(const FoundCheckpoint& newest);
// The one that the job would go on from, were `run_folder` its run's.
absl::StatusOr<std::optional<FoundCheckpoint>> newest_checkpoint(const JobFile& job,
                                                                 const std::string& run_folder);

struct RunToResume {
  std::string name;
  std::string passed_over;  // says which newer runs have no checkpoint; empty: there are none
};

// Which of `runs` the job goes on with, where its user names none: `runs` are its own, at least one, the
// newest first. It is the newest that has a checkpoint, in its own place or the job's. A run that somebody
// owns, or whose checkpoints can't be read or are gone, is not passed over. Where none has a checkpoint it is
// the newest.
RunToResume run_to_resume(const std::vector<RunState>& runs, const JobFile& job);

// Says how many workers the job has, and the run had, as `scale` left it; empty: as many.
std::string workers_text(const RunState& earlier, const JobFile& job);

// FAILED_PRECONDITION, with what to do: the run is of another job, has nothing to go on from, its checkpoints
// are gone, or its newest one can't be continued by this job (another model, more steps than the job has,
// ...). `where`: RunStore::where().
absl::Status check_resume(const RunState& earlier, const JobFile& job,
                          const std::optional<FoundCheckpoint>& newest, std::string_view where);

}  // namespace paceline::cli
