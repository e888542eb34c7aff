#pragma once

// Commands find jobs in one of two places: an API server (job_client.h), or the runs of this machine
// (cli/commands/run_source.h). This is a source of jobs with what commands say of them.

#include <ostream>
#include <string>

#include "cli/cluster/event_rows.h"
#include "cli/state/run_state.h"
#include "controller/jobs/job_source.h"

namespace paceline::cli {

using jobs::LogRequest;
using jobs::LogSink;

class JobSource : public virtual jobs::JobSource {
 public:
  // The one of that name; where it is empty, the newest that goes on, else the newest.
  virtual absl::StatusOr<kube::Json> choose(const std::string& ns, const std::string& name) = 0;
  // Whether the object of this uid is still there.
  virtual absl::StatusOr<bool> exists(const std::string& ns, const std::string& name,
                                      const std::string& uid) = 0;

  // After an edit of a run: waits until the process that owns it has looked at it, at most kEditLimit long,
  // and tells `err` of one that stands still. DEADLINE_EXCEEDED: it has not. FAILED_PRECONDITION: the run has
  // ended meanwhile. A cluster's controllers are not waited for. `verb`: "suspend", for people.
  virtual absl::Status await_owner(const std::string& /*name*/, const char* /*verb*/, std::ostream& /*err*/) {
    return absl::OkStatus();
  }

  // After that of a suspension: waits until the run's members have saved and left, at most kSuspensionLimit
  // long, and tells `err` that it waits. Returns what the suspension loses, in words, empty: nothing; or
  // DATA_LOSS, with the same words, where the members could not save. DEADLINE_EXCEEDED, FAILED_PRECONDITION:
  // as above. A cluster's members are not waited for.
  virtual absl::StatusOr<std::string> await_suspended(const std::string& /*name*/, std::ostream& /*err*/) {
    return "";
  }

  // Whether there is a checkpoint that this run could go on from. Jobs of a cluster are no runs.
  virtual bool has_checkpoint(const RunState&) const { return false; }

  // How results name a job: "trainingjob.paceline.dev/digits"; a run: "digits".
  virtual std::string reference(const std::string& name) const = 0;
  // The words behind its name in commands: " -n team-a", " --state-dir runs"; empty: none are needed.
  virtual std::string where(const std::string& ns) const = 0;
  // Says that there are none, and what helps; empty: nothing is to be said.
  virtual std::string none(const std::string& ns, const std::string& program) const = 0;
};

}  // namespace paceline::cli
