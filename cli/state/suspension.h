#pragma once

// spec.runPolicy.suspend of a run, in the job.yaml of its folder: `paceline suspend` and `resume` edit it,
// and the run's owner acts on it.

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "cli/state/run_store.h"

namespace paceline::cli {

// FAILED_PRECONDITION where the run has ended, with how to go on with it. `verb`: "suspend", for people.
absl::Status goes_on(const RunState& run, const char* verb);

// Edits the job of a run that goes on; its owner acts within a second. False: the job says so already.
// NOT_FOUND, FAILED_PRECONDITION (the run has ended, or its job.yaml is none).
absl::StatusOr<bool> set_suspended(const RunStore& store, const std::string& name, bool suspended);

// One thread.
class SuspensionEdits {
 public:
  explicit SuspensionEdits(std::string run_folder) : folder_(std::move(run_folder)) {}
  // Returns what the job says where its file has been replaced since the last call (the first time always)
  // and can be read.
  std::optional<bool> look();

 private:
  const std::string folder_;
  ino_t seen_ = 0;
};

}  // namespace paceline::cli
