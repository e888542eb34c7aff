#pragma once

// How busy this machine is, with whatever.

#include <optional>

namespace paceline {

// Linux counts threads that wait for a disk, too.
struct MachineLoad {
  double threads = 0;  // of all programs that ran or waited, as a mean over the last minute
  int processors = 1;  // of the machine
  int usable = 1;      // by this process: usable_processors()
};
// Nothing where the system does not tell.
std::optional<MachineLoad> machine_load();

}  // namespace paceline
