#pragma once

// The logs that the members of a run of this machine have written, as its folder keeps them: logs/<pod>.log.

#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "cli/cluster/job_source.h"
#include "controller/cluster/kube/pause.h"

namespace paceline::cli {

// One for each file of `folder`, by role, index and attempt; its uid is the file's path. None where there is
// no folder; else as errno_status().
absl::StatusOr<std::vector<kube::SlimPod>> logged_pods(const std::string& folder);

// JobSource::read_log() of a run. A file that is gone by now has nothing. `since` goes by the times with which
// members' own lines begin: the first line of that time or a later one is the first. FAILED_PRECONDITION: no
// regular file; else as errno_status().
absl::Status read_run_log(const std::string& path, const LogRequest& request, WallTime now,
                          const kube::Pause& pause, const LogSink& sink, const std::stop_token& stop);

}  // namespace paceline::cli
