#pragma once

// Which pods belong to the present attempt, and which are left of earlier ones. Pure.

#include <optional>

#include "controller/plan/observed.h"

namespace paceline::plan {

// The number at the end of the name of the pod that a slot shall have now.
std::int64_t wanted_attempt(const api::TrainingJob& job, Role role, int index);

// The number of the newest pod that was to take over in this place; that of the place's own pod: none was.
std::int64_t newest_number(const api::TrainingJob& job, Role role, int index);

// The number of an attempt that follows this one.
std::int64_t next_attempt(const api::TrainingJob& job);

// The entry of a place, made where there is none.
api::Replacement& replacement_of(api::Restarts& restarts, Role role, std::int64_t index);

// Higher numbers than the status knows: the job is an old copy. Nothing: there are none.
std::optional<std::int64_t> attempt_from_the_future(const Observed& observed);

// The place has the next number, behind all that were given to successors.
void take_next(api::Replacement& place);

// The present attempt alone: without earlier pods and successors (stragglers.h), and without an earlier
// coordinator's report (in its place one that says that nobody has joined). Nothing: `observed` is that
// already.
std::optional<Observed> present(const Observed& observed);

// A pod that this place waits for may still run: one of an earlier attempt, or that had the place before.
// Pods of a lost node don't count: nobody can know, and its members are refused by the present
// coordinator.
bool lives(const cluster::Pod& pod);
bool earlier_lives(const Observed& observed, Role role, int index);

}  // namespace paceline::plan
