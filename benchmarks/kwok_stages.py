"""What kwok does in the place of kubelets: its Stages, for nodes and for pods of one phase."""

import json

NOW = "{{ Now | Quote }}"


def stage(name, kind, expressions, following):
    group = {"apiGroup": "v1", "kind": kind}
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name},
            "spec": {"resourceRef": group, "selector": {"matchExpressions": expressions}, "next": following}}


def pod_stage(phase, following):
    """Pods of `phase` become `following`: Running or Succeeded."""
    times = f"startedAt: {NOW}" if following == "Running" else f"exitCode: 0, reason: Completed, startedAt: {NOW}, finishedAt: {NOW}"
    state = f"{{running: {{{times}}}}}" if following == "Running" else f"{{terminated: {{{times}}}}}"
    conditions = [f"- {{type: {kind}, status: \"True\", lastTransitionTime: {NOW}}}" for kind in ("Initialized", "Ready", "ContainersReady")]
    containers = ["{{ range .spec.containers }}", "- name: {{ .name | Quote }}", "  image: {{ .image | Quote }}", "  ready: true", "  restartCount: 0",
                  f"  state: {state}", "{{ end }}"]
    status = ["conditions:", *conditions, "containerStatuses:", *containers, "hostIP: 10.9.0.1", "podIP: 10.9.0.2",
              f"phase: {following}", f"startTime: {NOW}"]
    expressions = [{"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}, {"key": ".status.phase", "operator": "In", "values": [phase]}]
    return stage(f"pod-{following.lower()}", "Pod", expressions, {"statusTemplate": "\n".join(status)})


def pod_deletion():
    return stage("pod-delete", "Pod", [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}], {"delete": True, "finalizers": {"empty": True}})


def node_start():
    status = ["conditions:", f"- {{type: Ready, status: \"True\", reason: KubeletReady, lastHeartbeatTime: {NOW}, lastTransitionTime: {NOW}}}",
              "allocatable: {cpu: 10k, memory: 10Ti, pods: \"100k\"}", "capacity: {cpu: 10k, memory: 10Ti, pods: \"100k\"}", "phase: Running"]
    ready = '.status.conditions.[] | select( .type == "Ready" ) | .status'
    return stage("node-initialize", "Node", [{"key": ready, "operator": "NotIn", "values": ["True"]}], {"statusTemplate": "\n".join(status)})


def configuration(*stages):
    """A kwok configuration file: JSON documents are YAML."""
    return "\n---\n".join(json.dumps(each) for each in [node_start(), pod_deletion(), *stages])
