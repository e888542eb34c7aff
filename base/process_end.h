#pragma once

// How a process ends: the exit codes of our own members, and the words for an exit or a signal. Pure.

#include <optional>
#include <string>

namespace paceline {

// The exit codes of a member that runs our own program. Another program may mean anything by them.
enum MemberExit : int {
  kExitFinished = 0,       // trained to the end
  kExitFailed = 1,         // training failed, perhaps since it lost a peer; the coordinator knows why
  kExitConfiguration = 2,  // environment, data or model aren't as they must be
  kExitEnded = 3,          // evicted, stopped, or the coordinator is gone
  kExitStuck = 134,        // a library keeps the GPU: as aborted (SIGABRT), so that the job may try again
};

// "killed by signal 9 (SIGKILL)", "exited with code 2"; empty where neither is known.
std::string exit_text(std::optional<int> exit_code, std::optional<int> signal);

}  // namespace paceline
