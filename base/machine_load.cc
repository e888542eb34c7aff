#include "base/machine_load.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/processors.h"

namespace paceline {

std::optional<MachineLoad> machine_load() {
  double threads = 0;
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (::getloadavg(&threads, 1) != 1 || processors < 1) return std::nullopt;
  return MachineLoad{threads, static_cast<int>(processors), usable_processors()};
}

}  // namespace paceline
