#include "controller/cluster/cluster.h"

#include <iterator>

namespace paceline::cluster {

const char* pod_phase_name(PodPhase phase) {
  constexpr const char* kNames[] = {"Pending", "Running", "Succeeded", "Failed"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(PodPhase::kFailed) + 1);
  return kNames[static_cast<std::size_t>(phase)];
}

}  // namespace paceline::cluster
