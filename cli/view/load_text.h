#pragma once

// What a machine's load has to say of a member that stopped answering. Pure.

#include <optional>
#include <string>

#include "base/machine_load.h"

namespace paceline::cli {

// "over the last minute 14.2 threads wanted this machine's 2 processors, ..."; empty where nothing is known.
std::string load_text(const std::optional<MachineLoad>& load);

}  // namespace paceline::cli
