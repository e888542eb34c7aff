#pragma once

// Who made the job fail, and who only suffered from it. Pure.
//
// Order of evidence: the coordinator's verdict; else the pod that ended first by a signal or a non-zero exit
// code. Exit code 3 (evicted, or the coordinator is gone) is never a cause while there is another failure,
// and exit code 1 is none within kSameMoment of a signal: peers of one that is killed notice before the
// system tells us.

#include <optional>
#include <string>
#include <vector>

#include "base/process_end.h"
#include "controller/plan/observed.h"

namespace paceline::plan {

inline constexpr Duration kSameMoment = std::chrono::milliseconds(250);

struct Blame {
  std::string reason;   // CamelCase: MemberKilled, MemberExited, MemberFrozen, ...
  std::string message;  // names role, index, pod, pid, signal or exit code, and step
  std::optional<cluster::Pod> pod;
  std::vector<std::string> victims;  // "worker-2 exited with code 3", each
  Role role = Role::kWorker;
  int index = 0;
  std::optional<CulpritKind> kind;       // by the coordinator's verdict
  std::optional<int> exit_code, signal;  // of the process, as far as anybody knows
  bool gone = false;                     // it fell silent, and its pod was deleted, by the cluster's own word
  bool evicted = false;                  // our trainer's pod ended as who is told to leave does
};

// The verdict's culprit. REQUIRES: observed.report->culprit.
Blame blame_by_verdict(const Observed& observed);

// The first failed pod of the ring; nothing where none has failed. A pod that is being deleted ends as it was
// told to: it counts only if it failed before. One whose work was done when it was evicted or disrupted, or
// whose sidecar failed then, does not count (has_finished).
std::optional<Blame> blame_by_pods(const Observed& observed);

// This pod, whoever else failed.
Blame blame_pod(const Observed& observed, const cluster::Pod& pod);

// "worker-2 (pod fashion-worker-2-0, pid 4711)"
std::string describe(Role role, int index, const std::string& pod, std::int64_t pid);

// "was killed by signal 9 (SIGKILL)", "exited with code 1", "could not be started: ..."; empty while it runs.
std::string describe_end(const cluster::Pod& pod);

}  // namespace paceline::plan
