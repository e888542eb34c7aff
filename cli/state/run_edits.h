#pragma once

// A run that goes on may be edited in the job.yaml of its folder: spec.runPolicy.suspend (`paceline
// suspend` and `resume`), the number of workers (`paceline scale`), and requests (`paceline checkpoint` and
// `replace`), which are annotations. The run's owner acts on it. Edits of several commands come one after the
// other: each holds the file edit.lock of that folder (flock(2)) while it reads, changes and writes the job.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "cli/state/run_store.h"
#include "controller/api/types.h"

namespace paceline::cli {

struct RunEdit {
  std::optional<bool> suspend;
  std::optional<std::int64_t> workers;               // of a job that has some
  std::map<std::string, std::string> requests = {};  // annotations of api/requests.h
};

// FAILED_PRECONDITION where the run has ended, with how to go on with it where it can. `verb`: "suspend", for
// people; `where`: RunStore::where().
absl::Status goes_on(const RunState& run, const char* verb, std::string_view where);

// Edits the job of a run that goes on; its owner acts within a second. Whether the job may have so many
// workers is the caller's to know. NOT_FOUND, FAILED_PRECONDITION (the run has ended, or its job.yaml is
// none). ABORTED: another edit is under way, which takes milliseconds; nothing is changed.
absl::Status edit_run(const RunStore& store, const std::string& name, const RunEdit& edit, const char* verb);

// One thread.
class RunEdits {
 public:
  explicit RunEdits(std::string run_folder) : folder_(std::move(run_folder)) {}
  // Returns what the job says where its file has been replaced since the last call (the first time always)
  // and can be read.
  std::optional<RunEdit> look();

 private:
  const std::string folder_;
  // The second edit of two may give the file the number that it had before both.
  struct Seen {
    ino_t number = 0;
    std::int64_t seconds = 0, nanoseconds = 0;  // when it got its name
    bool operator==(const Seen&) const = default;
  };
  Seen seen_;
};

}  // namespace paceline::cli
