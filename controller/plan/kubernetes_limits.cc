#include "controller/plan/kubernetes_limits.h"

namespace paceline::plan {

Limits kubernetes_limits() {
  Limits limits;
  limits.cores = 1;  // one thread for each member without a limit: those of one node share its processors
  limits.worker_program = {"paceline-worker"};
  limits.first_batch = limits.largest_batch;     // where creations fail at once the executor goes slowly
  limits.create_failures = 0;                    // a quota may have room later
  limits.stop_grace = std::chrono::seconds(30);  // Kubernetes' own; for a last checkpoint
  limits.exit_grace = std::chrono::seconds(5);   // the kubelet tells of a pod's end within seconds
  limits.refresh = kKubernetesStatusInterval;    // whatever else changes wakes the reconciler
  return limits;
}

}  // namespace paceline::plan
