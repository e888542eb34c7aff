#include "controller/cluster/cluster.h"

namespace paceline::cluster {

const char* pod_phase_name(PodPhase phase) {
  switch (phase) {
    case PodPhase::kPending:
      return "Pending";
    case PodPhase::kRunning:
      return "Running";
    case PodPhase::kSucceeded:
      return "Succeeded";
    case PodPhase::kFailed:
      return "Failed";
  }
  return "Unknown";
}

}  // namespace paceline::cluster
