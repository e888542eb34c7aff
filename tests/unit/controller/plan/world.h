#pragma once

// Observed worlds for the planner's tests.

#include <signal.h>

#include <string>

#include "controller/plan/pod_observations.h"
#include "controller/plan/pods.h"
#include "controller/plan/simulate.h"

namespace paceline::plan {

inline api::TrainingJob make_job(int chiefs, int workers) {
  api::TrainingJob job;
  job.metadata.name = "fashion";
  job.spec.training.emplace();
  if (chiefs > 0) job.spec.replica_specs.chief = api::ReplicaSpec{chiefs, {}, {}};
  if (workers > 0) job.spec.replica_specs.worker = api::ReplicaSpec{workers, {}, {}};
  return job;
}

// The same with servers, and perhaps an evaluator.
inline api::TrainingJob make_job_with_servers(int workers, int servers, int evaluators = 0) {
  api::TrainingJob job = make_job(1, workers);
  job.spec.strategy.type = api::StrategyType::kParameterServer;
  job.spec.replica_specs.ps = api::ReplicaSpec{servers, {}, {}};
  if (evaluators > 0) job.spec.replica_specs.evaluator = api::ReplicaSpec{evaluators, {}, {}};
  return job;
}

inline Observed make_world(api::TrainingJob job) {
  Observed world;
  world.job = std::move(job);
  world.job_uid = "job-uid";
  world.now = WallTime(std::chrono::hours(1000));
  world.limits.cores = 8;
  world.limits.worker_program = {"/opt/paceline-worker"};
  world.coordinator_env = {{"PACELINE_COORDINATOR", "127.0.0.1:1234"}, {"PACELINE_TOKEN", "secret token"}};
  world.report = JobReport{};
  return world;
}

inline Observed make_world(int chiefs, int workers) {
  return make_world(make_job(chiefs, workers));
}

// All pods run, all members train in view 1, and the status says so.
inline Observed make_running_world(api::TrainingJob job, Step step = 120) {
  Observed world = make_world(std::move(job));
  run(world);
  for (cluster::Pod& pod : world.pods) pod.pid = 4000 + pod.spec.index;
  world.report->progress.step = step;
  for (ReportedMember& member : world.report->members) member.step = step;
  apply(plan(world), world);
  world.now += std::chrono::seconds(10);
  return world;
}

inline Observed make_running_world(int chiefs, int workers, Step step = 120) {
  return make_running_world(make_job(chiefs, workers), step);
}

inline cluster::Pod& pod_of(Observed& world, Role role, int index) {
  return const_cast<cluster::Pod&>(*find_pod(world, role, index));
}

inline void kill(Observed& world, cluster::Pod& pod, int signal, Duration ago = {}) {
  pod.phase = cluster::PodPhase::kFailed;
  pod.reason = "Error";
  pod.signal = signal;
  pod.finished = world.now - ago;
  world.seen[pod.uid] = {pod.phase, world.now - ago};
}

inline void finish(Observed& world, cluster::Pod& pod, int code, Duration ago = {}) {
  pod.phase = code == 0 ? cluster::PodPhase::kSucceeded : cluster::PodPhase::kFailed;
  pod.reason = code == 0 ? "Completed" : "Error";
  pod.exit_code = code;
  pod.finished = world.now - ago;
  world.seen[pod.uid] = {pod.phase, world.now - ago};
}

template <typename T>
std::vector<T> actions_of(const Plan& plan) {
  std::vector<T> result;
  for (const Action& action : plan.actions) {
    if (const T* match = std::get_if<T>(&action)) result.push_back(*match);
  }
  return result;
}

}  // namespace paceline::plan
