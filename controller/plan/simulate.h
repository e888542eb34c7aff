#pragma once

// A model of a cluster and its coordinators, in which nothing fails by itself: for `paceline explain` and for
// tests. Pure.

#include "controller/plan/plan.h"

namespace paceline::plan {

// Does to `world` what the plan says: pods appear (Pending), are marked as deleting or disappear, the status
// is taken over. A creation of a name that exists is refused, as by a real cluster. A new attempt gets a new
// coordinator.
void apply(const Plan& plan, Observed& world);

// Lets the world go on for a moment: pending pods run, deleting pods disappear, running members join; when
// all have joined, the coordinator reports Running.
void advance(Observed& world);

// Both in turns, until all members train, or for a while where they never do.
void run(Observed& world);

}  // namespace paceline::plan
