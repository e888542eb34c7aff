#pragma once

// What `paceline run` has before its first process starts: the job, the run's folder with a first status, the
// lock on its checkpoints. One thread.

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/device_choice.h"
#include "base/unique_fd.h"
#include "cli/commands/job_file.h"
#include "cli/run/metrics_file.h"
#include "cli/session.h"
#include "cli/state/run_state.h"
#include "cli/state/run_store.h"

namespace paceline::cli {

struct RunOptions {
  std::string file, output = "auto", log_level = "info";
  bool dashboard = false;
  std::optional<std::string> name, resume;  // resume: empty is run_to_resume()
};

// What a resumed run was before.
struct EarlierRun {
  RunState state;
  std::string job_text;  // empty: it had none
};

struct RunSetup {
  JobFile job;
  RunState state;
  UniqueFd checkpoint_lock;
  std::unique_ptr<OwnedRun> run;  // null: there is nothing yet that would have to be given back
  std::unique_ptr<MetricsFile> metrics;
  std::optional<EarlierRun> earlier;  // of a resumed run
  bool adopts = false;                // the earlier run is deleted: this one is new, and has its checkpoints
  std::string passed_over;            // of a resumed run: RunToResume
  std::string workers;                // of a resumed run: workers_text()
  std::string warning;                // of a GPU that lies idle (cli/view/device_text.h); empty: none
};

// What earlier sessions of a resumed run took.
double seconds_before(const RunSetup& setup);

// This command's own, which its members have.
DeviceVariables device_environment();
// INVALID_ARGUMENT: where members compute says neither this command's environment, which they have, nor what
// the job's containers set instead, in words that are known.
absl::Status check_devices(const JobFile& job);

// The job that the user named, which may be a pipe or a terminal and be waited for.
absl::Status read_run_job(const RunOptions& options, RunSetup& setup);

// Of the job that was read: makes or takes over the run's folder. Errors are for the user; a new run then
// leaves nothing, an earlier one is as it was. What it throws (std::bad_alloc) leaves in `setup` what there
// was.
absl::Status set_up_run(const Session& session, const RunOptions& options, RunSetup& setup);

// The run's last status.json; of a resumed one that took no step and did not succeed: what its earlier
// session left, as if nobody had tried.
absl::Status write_last_state(const RunSetup& setup, bool took_step);

}  // namespace paceline::cli
