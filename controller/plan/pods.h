#pragma once

// Which pods a job wants, and how each looks. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/plan/observed.h"

namespace paceline::plan {

// One place for a pod. Chief first, then workers by index: those who train; then servers and evaluators.
struct Slot {
  Role role = Role::kWorker;
  int index = 0;
  const api::ReplicaSpec* replica = nullptr;  // of the job that the slot was made from
};
std::vector<Slot> desired_slots(const api::TrainingJob& job);

// The member whose success is the job's: the chief, or worker 0.
Slot leader_slot(const api::TrainingJob& job);

// <job>-<role>-<index>-<attempt>
// It runs the runtime's own program, which ends with code 0 only when training is over.
bool is_built_in(const api::TrainingJob& job, Role role);

std::string pod_name(const api::TrainingJob& job, Role role, int index, std::int64_t attempt);

// What follows the last "-" of such a name, or of a suffix of such names; nothing where that is no number.
std::optional<std::int64_t> attempt_in(std::string_view pod_name);

// Command, environment and threads. The template's own command, args and env pass through; PACELINE_* are
// ours. Cores are shared out evenly among the job's pods, at least one thread each, unless the template
// limits its processor time.
cluster::PodSpec pod_spec(const Observed& observed, const Slot& slot);
// The same with another number than the place's own.
cluster::PodSpec pod_spec(const Observed& observed, const Slot& slot, std::int64_t number);

// The pod in a slot; null where there is none.
const cluster::Pod* find_pod(const Observed& observed, Role role, int index);

}  // namespace paceline::plan
