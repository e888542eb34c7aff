#include "controller/plan/pods.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/text.h"
#include "controller/plan/attempts.h"
#include "controller/plan/elastic.h"
#include "controller/plan/launch_env.h"

namespace paceline::plan {

namespace {

constexpr double kMostThreads = 4096;

// Each of these takes as much memory as the others.
bool trains(Role role) {
  return role == Role::kChief || role == Role::kWorker;
}

std::vector<std::string> command_of(const api::TrainingJob& job, Role role, const Limits& limits,
                                    const api::Container* container) {
  std::vector<std::string> command;
  // The image's own program then, with the template's arguments, which the template keeps.
  if (!job.spec.training && (container == nullptr || container->command.empty())) return command;
  if (container == nullptr || container->command.empty()) {
    command = limits.worker_program;
  } else {
    command = container->command;
    const bool relative = command[0].find('/') != std::string::npos && command[0][0] != '/';
    if (relative && !limits.base_folder.empty()) command[0] = str_cat(limits.base_folder, "/", command[0]);
  }
  if (container != nullptr) command.insert(command.end(), container->args.begin(), container->args.end());
  if (!job.spec.training && trains(role))
    command.insert(command.begin(), limits.step_teller.begin(), limits.step_teller.end());
  return command;
}

int threads_of(const Observed& observed, const api::Container* container) {
  const double limit = container == nullptr ? 0 : container->cpu_limit;
  const double own = limit > 0 || container == nullptr ? limit : container->cpu_request;
  if (own > 0) return static_cast<int>(std::min(std::ceil(own), kMostThreads));
  if (observed.limits.cores == 0) return 0;
  const auto pods =
      std::max<std::int64_t>(1, api::member_count(observed.job) + api::standby_count(observed.job));
  return std::max(1, static_cast<int>(observed.limits.cores / pods));
}

// Of those of the job that compute: the chief, workers, then evaluators.
std::optional<int> computing_number(const api::TrainingJob& job, const Slot& slot) {
  const auto replicas = [](const std::optional<api::ReplicaSpec>& replica) {
    return replica ? replica->places() : 0;
  };
  const int chiefs = replicas(job.spec.replica_specs.chief),
            workers = replicas(job.spec.replica_specs.worker);
  switch (slot.role) {
    case Role::kChief:
      return slot.index;
    case Role::kWorker:
      return chiefs + slot.index;
    case Role::kEvaluator:
      return chiefs + workers + slot.index;
    case Role::kServer:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Slot> desired_slots(const api::TrainingJob& job) {
  std::vector<Slot> slots;
  const auto add = [&](Role role, const std::optional<api::ReplicaSpec>& replica) {
    if (!replica) return;
    for (int i = 0; i < replica->places(); ++i) slots.push_back({role, i, &*replica});
  };
  add(Role::kChief, job.spec.replica_specs.chief);
  add(Role::kWorker, job.spec.replica_specs.worker);
  add(Role::kServer, job.spec.replica_specs.ps);
  add(Role::kEvaluator, job.spec.replica_specs.evaluator);
  return slots;
}

Slot leader_slot(const api::TrainingJob& job) {
  const std::vector<Slot> slots = desired_slots(job);
  PL_CHECK(!slots.empty(), "validation refuses jobs without a chief or a worker");
  return slots.front();
}

bool is_built_in(const api::TrainingJob& job, Role role) {
  const auto& replica = api::replica_spec(job, role);
  return job.spec.training && replica && (!replica->container || replica->container->command.empty());
}

std::string pod_name(const api::TrainingJob& job, Role role, int index, std::int64_t attempt) {
  return str_cat(job.metadata.name, "-", role_name(role), "-", index, "-", attempt);
}

std::optional<std::int64_t> attempt_in(std::string_view pod_name) {
  const std::size_t dash = pod_name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view digits = pod_name.substr(dash + 1);
  std::int64_t attempt = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), attempt);
  if (error != std::errc() || end != digits.data() + digits.size() || attempt < 0) return std::nullopt;
  return attempt;
}

cluster::PodSpec pod_spec(const Observed& observed, const Slot& slot) {
  return pod_spec(observed, slot, wanted_attempt(observed.job, slot.role, slot.index));
}

cluster::PodSpec pod_spec(const Observed& observed, const Slot& slot, std::int64_t number) {
  const api::TrainingJob& job = observed.job;
  const api::Container* container = slot.replica->container ? &*slot.replica->container : nullptr;
  cluster::PodSpec spec;
  spec.ns = job.metadata.ns;
  spec.attempt = static_cast<int>(number);
  spec.name = pod_name(job, slot.role, slot.index, spec.attempt);
  spec.job = job.metadata.name;
  spec.job_uid = observed.job_uid;
  spec.role = slot.role;
  spec.index = slot.index;
  spec.command = command_of(job, slot.role, observed.limits, container);
  spec.threads = threads_of(observed, container);
  spec.hears_steps = !job.spec.training && job.spec.stragglers.told_by_program && trains(slot.role);
  spec.priority_class = job.spec.run_policy.scheduling_policy.priority_class;
  const Slot leader = leader_slot(job);
  const bool leads = slot.role == leader.role && slot.index == leader.index;
  // The leader saves, also what servers hold; in a ring it may be anybody who is left.
  const bool saves = leads || slot.role == Role::kServer || is_elastic(job, slot.role);
  if (saves && job.spec.training) spec.save_grace = observed.limits.save_grace;
  spec.env = observed.coordinator_env;
  spec.env["PACELINE_JOB"] = api::job_key(job);
  spec.env["PACELINE_ROLE"] = role_name(slot.role);
  spec.env["PACELINE_INDEX"] = std::to_string(slot.index);
  if (const auto number = computing_number(job, slot)) spec.env["PACELINE_SLOT"] = std::to_string(*number);
  spec.env["PACELINE_POD"] = spec.name;
  spec.env["PACELINE_ATTEMPT"] = std::to_string(job.status.restarts.attempt);
  spec.env["PACELINE_INCARNATION"] = std::to_string(spec.attempt);
  if (spec.threads > 0) spec.env["PACELINE_THREADS"] = std::to_string(spec.threads);
  if (observed.limits.free_mib > 0 && trains(slot.role)) {
    spec.env["PACELINE_HOST_FREE_MIB"] = std::to_string(observed.limits.free_mib);
    spec.env["PACELINE_HOST_MEMBERS"] = std::to_string(
        std::ranges::count_if(desired_slots(job), [](const Slot& each) { return trains(each.role); }));
  }
  if (!job.spec.training) spec.env.merge(launch_env(job, slot, observed.limits.first_port));
  if (container != nullptr) {
    for (const api::EnvVar& variable : container->env) spec.env.emplace(variable.name, variable.value);
  }
  return spec;
}

const cluster::Pod* find_pod(const Observed& observed, Role role, int index) {
  const auto found = std::ranges::find_if(observed.pods, [&](const cluster::Pod& pod) {
    return pod.spec.role == role && pod.spec.index == index;
  });
  return found == observed.pods.end() ? nullptr : &*found;
}

}  // namespace paceline::plan
