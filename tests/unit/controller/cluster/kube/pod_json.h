#pragma once

// Pod objects as a real API server gives them.

#include <string>

#include "base/text.h"
#include "controller/cluster/kube/json.h"

namespace paceline::kube {

inline Json condition(const char* type, const char* status, const char* reason = nullptr,
                      const char* message = nullptr) {
  Json result = {{"type", type},
                 {"status", status},
                 {"lastProbeTime", nullptr},
                 {"lastTransitionTime", "2026-01-31T12:00:03Z"}};
  if (reason != nullptr) result["reason"] = reason;
  if (message != nullptr) result["message"] = message;
  return result;
}

// Running on a node, with a sidecar, and with all that the API server adds.
inline Json running_pod(int index = 3) {
  const std::string name = str_cat("resnet-imagenet-large-worker-", index, "-0");
  Json pod = Json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "namespace": "machine-learning-team-a", "resourceVersion": "123456789",
      "creationTimestamp": "2026-01-31T12:00:00Z", "generation": 1,
      "labels": {"app.kubernetes.io/part-of": "vision", "paceline.dev/job-name": "resnet-imagenet-large",
                 "paceline.dev/role": "worker", "paceline.dev/attempt": "0"},
      "annotations": {"cni.projectcalico.org/podIP": "10.244.171.112/32", "prometheus.io/scrape": "true"},
      "ownerReferences": [{"apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob",
        "name": "resnet-imagenet-large", "uid": "0b6e4d7e-9a3c-4c53-8f4a-5d2f9b1c7e10",
        "controller": true, "blockOwnerDeletion": true}]
    },
    "spec": {
      "nodeName": "gke-training-pool-a100-80gb-1f3c9d2b-x7k2", "restartPolicy": "Never",
      "serviceAccountName": "default", "subdomain": "resnet-imagenet-large",
      "containers": [
        {"name": "metrics", "image": "registry.example/exporter:1.2", "args": ["--port=9400"]},
        {"name": "trainer", "image": "registry.example/team-a/resnet@sha256:0123456789abcdef",
         "command": ["python", "-m", "train"], "resources": {"limits": {"nvidia.com/gpu": "8", "memory": "512Gi"}},
         "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
      "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
      "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "imagenet"}}]
    },
    "status": {
      "phase": "Running", "hostIP": "10.128.0.42", "podIP": "10.244.171.112", "qosClass": "Burstable",
      "podIPs": [{"ip": "10.244.171.112"}, {"ip": "fd00:10:244::1a2b"}], "startTime": "2026-01-31T12:00:01Z",
      "containerStatuses": [
        {"name": "metrics", "ready": true, "restartCount": 0, "started": true,
         "state": {"running": {"startedAt": "2026-01-31T12:00:02Z"}}},
        {"name": "trainer", "ready": true, "restartCount": 0, "started": true,
         "containerID": "containerd://8d3c1f0e9b7a", "image": "registry.example/team-a/resnet@sha256:0123456789abcdef",
         "state": {"running": {"startedAt": "2026-01-31T12:00:05Z"}}}]
    }
  })");
  pod["metadata"]["name"] = name;
  pod["metadata"]["uid"] = str_cat("7c9e6679-7425-40de-944b-e07fc1f9", 1000 + index);
  pod["metadata"]["labels"]["paceline.dev/index"] = std::to_string(index);
  Json fields;
  for (int i = 0; i < 60; ++i) fields["f:status"][str_cat("f:field-number-", i)] = Json::object();
  pod["metadata"]["managedFields"] = {
      {{"manager", "kubelet"}, {"operation", "Update"}, {"fieldsV1", fields}}};
  pod["status"]["conditions"] = {condition("PodReadyToStartContainers", "True"),
                                 condition("Initialized", "True"), condition("Ready", "True"),
                                 condition("ContainersReady", "True"), condition("PodScheduled", "True")};
  return pod;
}

inline Json& trainer_state(Json& pod) {
  return pod["status"]["containerStatuses"][1]["state"];
}

inline Json terminated(int exit_code, const char* reason, const char* message = "") {
  return {{"terminated",
           {{"exitCode", exit_code},
            {"reason", reason},
            {"message", message},
            {"startedAt", "2026-01-31T12:00:05Z"},
            {"finishedAt", "2026-01-31T12:10:00Z"}}}};
}

inline Json pending_pod() {
  Json pod = running_pod();
  pod["spec"].erase("nodeName");
  pod["status"] = {{"phase", "Pending"}};
  return pod;
}

}  // namespace paceline::kube
