#include "controller/plan/pod_observations.h"

#include <algorithm>
#include <utility>

namespace paceline::plan {

void note_pod_observations(Observed& observed) {
  PodObservations seen;
  for (const cluster::Pod& pod : observed.pods) {
    const bool matters = pod.ended() || (observed.report && pod.phase == cluster::PodPhase::kRunning);
    if (!matters) continue;
    const auto known = observed.seen.find(pod.uid);
    const bool same = known != observed.seen.end() && known->second.phase == pod.phase;
    seen[pod.uid] = same ? known->second : PodObservation{pod.phase, observed.now};
    // The clock was set back since.
    seen[pod.uid].since = std::min(seen[pod.uid].since, observed.now);
  }
  observed.seen = std::move(seen);
}

Duration seen_for(const Observed& observed, const cluster::Pod& pod) {
  const auto known = observed.seen.find(pod.uid);
  if (known == observed.seen.end() || known->second.phase != pod.phase) return Duration::zero();
  return std::max<Duration>(observed.now - known->second.since, Duration::zero());
}

}  // namespace paceline::plan
