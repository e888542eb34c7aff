#include "controller/api/local.h"

#include "base/text.h"

namespace paceline::api {

namespace {

class Localizer {
 public:
  template <typename T>
  void reset(T& value, const T& local, const std::string& path, const char* why) {
    if (value == local) return;
    value = local;
    unused.push_back({path, why});
  }
  std::vector<Unused> unused;
};

void visit(Localizer& l, std::optional<ReplicaSpec>& replica, const std::string& path) {
  if (!replica) return;
  l.reset(replica->restart_policy, RestartPolicy::kNever, str_cat(path, ".restartPolicy"),
          "a local run is not started again by itself: a member that is lost ends it; "
          "continue with `paceline run --resume`");
  const char* fixed = "a local run keeps the size that it starts with";
  l.reset(replica->min_replicas, {}, str_cat(path, ".minReplicas"), fixed);
  l.reset(replica->max_replicas, {}, str_cat(path, ".maxReplicas"), fixed);
}

}  // namespace

std::vector<Unused> make_local(TrainingJob& job) {
  Localizer l;
  visit(l, job.spec.replica_specs.chief, "spec.replicaSpecs.chief");
  visit(l, job.spec.replica_specs.worker, "spec.replicaSpecs.worker");
  RunPolicy& p = job.spec.run_policy;
  const RunPolicy local;
  const std::string policy = "spec.runPolicy.";
  l.reset(p.suspend, local.suspend, policy + "suspend", "a local run starts at once");
  l.reset(p.ttl_seconds_after_finished, local.ttl_seconds_after_finished, policy + "ttlSecondsAfterFinished",
          "a local run stays until `paceline delete`");
  l.reset(p.clean_pod_policy, local.clean_pod_policy, policy + "cleanPodPolicy",
          "of a local run that has ended no process is left, and its logs stay");
  l.reset(p.backoff_limit, local.backoff_limit, policy + "backoffLimit",
          "a local run is not started again by itself");
  l.reset(p.managed_by, local.managed_by, policy + "managedBy", "a local run is managed by this command");
  const std::string scheduling = policy + "schedulingPolicy.";
  const char* no_queue = "a local run is not scheduled: it starts at once";
  l.reset(p.scheduling_policy.queue, {}, scheduling + "queue", no_queue);
  l.reset(p.scheduling_policy.priority_class, {}, scheduling + "priorityClass", no_queue);
  l.reset(p.scheduling_policy.min_available, {}, scheduling + "minAvailable", no_queue);
  return l.unused;
}

}  // namespace paceline::api
