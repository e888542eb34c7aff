#pragma once

// How busy this machine is, with whatever.

#include <optional>

namespace paceline {

struct MachineLoad {
  double threads = 0;  // of all programs that ran or wanted to, as a mean over the last minute
  int processors = 1;
};
// Nothing where the system does not tell.
std::optional<MachineLoad> machine_load();

}  // namespace paceline
