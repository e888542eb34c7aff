#pragma once

// TrainingJob, Pod and Event objects as an API server gives them, for the tests of cli/cluster.

#include <string>

#include "base/text.h"
#include "controller/cluster/kube/json.h"

namespace paceline::cli {

// One chief and three workers, of which `minReplicas` 2 and `maxReplicas` 5 are allowed.
inline kube::Json job_object(const std::string& name = "digits", const std::string& phase = "") {
  kube::Json job = kube::Json::parse(R"({
    "apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"managedFields": [{"manager": "paceline"}]},
    "spec": {
      "replicaSpecs": {"chief": {}, "worker": {"replicas": 3, "minReplicas": 2, "maxReplicas": 5, "restartPolicy": "OnFailure"}},
      "training": {"model": {"type": "mlp", "hidden": [8], "classes": 10},
        "data": {"format": "csv", "train": {"inputs": "a.csv"}, "testFraction": 0.2},
        "optimizer": {"learningRate": 0.1}, "globalBatchSize": 64, "steps": 200, "target": {"accuracy": 0.9}}}
  })");
  job["metadata"]["name"] = name;
  if (!phase.empty()) {
    job["status"] = {{"phase", phase},
                     {"reason", "MembersTrain"},
                     {"observedGeneration", 1},
                     {"message", "view 2 with 4 members trains"},
                     {"startTime", "2026-01-31T12:00:10Z"},
                     {"replicaStatuses",
                      {{{"role", "chief"}, {"active", 1}, {"ready", 1}},
                       {{"role", "worker"}, {"active", 3}, {"ready", 2}}}},
                     {"restarts", {{"attempt", 1}, {"total", 1}}},
                     {"view", {{"generation", 2}, {"size", 4}}},
                     {"progress",
                      {{"step", 120},
                       {"totalSteps", 200},
                       {"epoch", 1.5},
                       {"loss", 0.25},
                       {"testAccuracy", 0.875},
                       {"samplesPerSecond", 6400.0}}}};
  }
  return job;
}

inline kube::Json pod_object(const std::string& job, const std::string& role, int index, int attempt,
                             const std::string& phase = "Running") {
  kube::Json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       {{"name", str_cat(job, "-", role, "-", index, "-", attempt)},
        {"labels",
         {{"paceline.dev/job-name", job},
          {"paceline.dev/role", role},
          {"paceline.dev/index", std::to_string(index)},
          {"paceline.dev/attempt", std::to_string(attempt)}}}}},
      {"spec", {{"nodeName", "node-1"}, {"restartPolicy", "Never"}, {"containers", {{{"name", "trainer"}}}}}},
      {"status", {{"phase", phase}}}};
  if (phase == "Succeeded" || phase == "Failed") {
    pod["status"]["containerStatuses"] = {{{"name", "trainer"},
                                           {"state",
                                            {{"terminated",
                                              {{"exitCode", phase == "Failed" ? 1 : 0},
                                               {"reason", phase == "Failed" ? "Error" : "Completed"}}}}}}};
  }
  return pod;
}

inline kube::Json event_object(const std::string& name, const std::string& kind, const std::string& object,
                               const std::string& reason, const std::string& time) {
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", name}}},
          {"involvedObject", {{"kind", kind}, {"name", object}}},
          {"type", "Normal"},
          {"reason", reason},
          {"message", str_cat(reason, " of ", object)},
          {"lastTimestamp", time}};
}

}  // namespace paceline::cli
