#pragma once

// Passes of the planner over a model cluster, and what the tests of its stories ask of it.

#include <algorithm>
#include <string>
#include <vector>

#include "controller/plan/attempts.h"
#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {

// One pass, and what follows from it.
inline Plan step(Observed& world) {
  const Plan made = plan(world);
  apply(made, world);
  return made;
}

inline void settle(Observed& world) {
  for (int i = 0; i < 12; ++i) {
    step(world);
    advance(world);
  }
}

inline Observed restartable(int chiefs, int workers,
                            api::RestartPolicy policy = api::RestartPolicy::kOnFailure) {
  Observed world = make_running_world(chiefs, workers);
  for (auto* spec : {&world.job.spec.replica_specs.chief, &world.job.spec.replica_specs.worker}) {
    if (*spec) (*spec)->restart_policy = policy;
  }
  return world;
}

// The pod that a slot has now, not one of an earlier attempt.
inline cluster::Pod& member(Observed& world, Role role, int index) {
  return *std::ranges::find_if(world.pods, [&](const cluster::Pod& pod) {
    return pod.spec.role == role && pod.spec.index == index &&
           pod.spec.attempt == wanted_attempt(world.job, role, index);
  });
}

// The verdict's wait is over.
inline void let_die(Observed& world, Role role, int index, const char* reason = "Error", int code = 137) {
  cluster::Pod& pod = member(world, role, index);
  finish(world, pod, code, world.limits.verdict_grace);
  pod.reason = reason;
}

inline bool is_provisional(const api::Status& status) {
  return status.fault && status.fault->provisional_since;
}

inline std::vector<std::string> names(const Observed& world) {
  std::vector<std::string> all;
  for (const cluster::Pod& pod : world.pods) all.push_back(pod.spec.name);
  return all;
}

inline std::vector<std::string> true_conditions(const api::Status& status) {
  std::vector<std::string> all;
  for (const api::Condition& each : status.conditions) {
    if (each.status) all.push_back(each.type);
  }
  return all;
}

inline const api::Condition& condition(const api::Status& status, const std::string& type) {
  return *std::ranges::find(status.conditions, type, &api::Condition::type);
}

}  // namespace paceline::plan
