#pragma once

// Carries out what a plan says, by calls to the cluster and to where jobs are kept. Every action may be done
// twice: a pod that exists already, or that is gone already, counts as success. Pods are created several at a
// time, with slow start (parallel.h), after all deletions, which make room.
//
// Thread-safe, but for one job at a time: its Creations are the caller's.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/cluster/cluster.h"
#include "controller/plan/plan.h"
#include "controller/reconcile/job_store.h"
#include "controller/reconcile/parallel.h"

namespace paceline::reconcile {

inline constexpr Duration kLongestRetryAfter = std::chrono::minutes(10);  // that a server may ask for

// What is remembered between passes of creating one job's pods.
struct Creations {
  std::map<Role, std::string> pod_templates;
  std::optional<plan::CreateFailure> failure;
  std::optional<TimePoint> again;  // no pod is created before: its server asked for the time
};

class Executor {
 public:
  // The references must outlive it.
  Executor(cluster::Cluster& cluster, JobStore& jobs, const Clock& clock, Logger log, int largest_batch,
           int create_threads);

  // All of the plan's actions. Events come last, and only when the others worked; first where the status has
  // told of all already (`status_first`). `refused`: why a pod could not be created; no error
  // of the whole.
  absl::Status execute(const std::string& key, const plan::Plan& plan, bool status_first,
                       Creations& creations, absl::Status& refused);
  // One of them, but no creation.
  absl::Status perform(const std::string& key, const plan::Action& action);
  // What is missing beside the pods comes back.
  void ensure(const std::string& key, const plan::Observed& observed);

 private:
  absl::Status create_all(const std::string& key, const std::vector<const plan::CreatePod*>& missing,
                          Creations& creations);
  absl::Status create(const std::string& key, const plan::CreatePod& action, const Creations& creations);

  cluster::Cluster& cluster_;
  JobStore& jobs_;
  const Clock& clock_;
  const Logger log_;
  const std::size_t largest_batch_;
  Parallel parallel_;
};

}  // namespace paceline::reconcile
