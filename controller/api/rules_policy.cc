// Rules over replica counts and spec.runPolicy.

#include "base/text.h"
#include "controller/api/rules.h"

namespace paceline::api {

namespace {

constexpr char kWorker[] = "spec.replicaSpecs.worker";
constexpr char kMinAvailable[] = "spec.runPolicy.schedulingPolicy.minAvailable";

void check_elastic(const TrainingJob& job, Findings& f) {
  if (!job.spec.replica_specs.worker) return;
  const ReplicaSpec& worker = *job.spec.replica_specs.worker;
  const std::string replicas = str_cat(kWorker, ".replicas"), min = str_cat(kWorker, ".minReplicas"),
                    max = str_cat(kWorker, ".maxReplicas");
  if (!f.clean(replicas)) return;
  if (worker.min_replicas && f.clean(min) && *worker.min_replicas > worker.replicas)
    f.refuse(min, "more than replicas", str_cat(*worker.min_replicas), str_cat("at most ", worker.replicas));
  if (worker.max_replicas && f.clean(max) && *worker.max_replicas < worker.replicas)
    f.refuse(max, "fewer than replicas", str_cat(*worker.max_replicas),
             str_cat("at least ", worker.replicas));
}

// Members train when all of them are there: another number would not be acted on.
void check_scheduling(const TrainingJob& job, Findings& f) {
  const std::optional<std::int64_t>& min = job.spec.run_policy.scheduling_policy.min_available;
  if (!min || !f.clean(kMinAvailable) || !f.clean("spec.replicaSpecs") || !f.has("spec.replicaSpecs")) return;
  const std::int64_t members = member_count(job);
  if (*min != members)
    f.refuse(kMinAvailable, "members train together or not at all", str_cat(*min),
             str_cat(members, ", the number of members"));
}

}  // namespace

void check_policies(const TrainingJob& job, Findings& findings) {
  check_elastic(job, findings);
  check_scheduling(job, findings);
}

}  // namespace paceline::api
