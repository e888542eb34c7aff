#pragma once

// For how long pods have been seen as they are, by the observer's own clock: what stands in a pod was written
// by its node's clock, which may be ahead of ours or behind. An observer that begins anew has seen nothing:
// what waits for time to pass then waits once more. Pure.

#include "controller/plan/observed.h"

namespace paceline::plan {

// Notes what changed since the last look, and forgets pods that are gone. To be called for each look, before
// plan(), which asks of pods that have ended, and of those that run and have not joined, be it beside a view.
void note_pod_observations(Observed& observed);

// Since it was first seen in its phase; zero: until now it was not, or not looked for.
Duration seen_for(const Observed& observed, const cluster::Pod& pod);

}  // namespace paceline::plan
