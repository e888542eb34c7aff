#include "controller/cluster/cluster.h"

namespace paceline::cluster {

const char* pod_phase_name(PodPhase phase) {
  constexpr const char* kNames[] = {"Pending", "Running", "Succeeded", "Failed"};
  return kNames[static_cast<std::size_t>(phase)];
}

}  // namespace paceline::cluster
