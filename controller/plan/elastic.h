#pragma once

// Rings that go on without a lost member: who may be lost, and how another one takes its place. Pure.
//
// The coordinator says who is lost, JobReport::lost; the planner makes the pod that comes after it. Pods of
// one place have rising numbers (status.restarts.replacements), which are written before the pod is made, and
// members that come back from an earlier one are refused. So the next one need not wait for its end.

#include "controller/api/types.h"
#include "controller/plan/observed.h"
#include "controller/plan/plan.h"

namespace paceline::plan {

// An all-reduce of the native trainer whose members may start again, or that may be smaller.
bool is_elastic(const api::TrainingJob& job);
// Likewise, and `role` is one of those who train in it.
bool is_elastic(const api::TrainingJob& job, Role role);

// How many must be left where lost members are not replaced; nothing: all.
std::optional<int> least_trainers(const api::TrainingJob& job);
// How many a view has at least.
int min_trainers(const api::TrainingJob& job);

// The lost member's pod is followed by another one, or the job fails, by its role's policy and by
// backoffLimit. Nothing, where that is done already.
void replace_lost(const Observed& observed, const LostMember& lost, Plan& plan);

}  // namespace paceline::plan
