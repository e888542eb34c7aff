#pragma once

// What a machine's load has to say of a member that stopped answering. Pure.

#include <optional>
#include <string>

#include "base/machine_load.h"

namespace paceline::cli {

// "over the last minute 14.2 threads ran or waited for a processor or a disk, and the machine has 2
// processors: ..."; empty where nothing is known.
std::string load_text(const std::optional<MachineLoad>& load);

}  // namespace paceline::cli
