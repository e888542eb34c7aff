"""The controller as the suites run it: what a chart installs, as plain objects, with leases so short that a takeover takes seconds."""

import json

NAMESPACE = "paceline-system"
NAME = "paceline-controller"
LABELS = {"app.kubernetes.io/name": NAME}
COORDINATOR_PORT, HEALTH_PORT = 7070, 8080
LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 8, 6, 1
RBAC = "rbac.authorization.k8s.io"

JOB_RULES = [
    {"apiGroups": ["paceline.dev"], "resources": ["trainingjobs"], "verbs": ["get", "list", "watch", "delete"]},
    {"apiGroups": ["paceline.dev"], "resources": ["trainingjobs/status"], "verbs": ["patch"]},
    {"apiGroups": ["paceline.dev"], "resources": ["trainingjobs/finalizers"], "verbs": ["update"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "create", "delete"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch", "create"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}]
LEASE_RULES = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]}]


def named(api_version, kind, name=NAME, namespace=NAMESPACE, **fields):
    metadata = {"name": name, "labels": LABELS}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def bound(scope, rules, namespace):
    """A role and its binding to the controller's service account."""
    subject = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    return [named(f"{RBAC}/v1", scope, namespace=namespace, rules=rules),
            named(f"{RBAC}/v1", f"{scope}Binding", namespace=namespace, subjects=[subject],
                  roleRef={"apiGroup": RBAC, "kind": scope, "name": NAME})]


def configuration(trainer_image):
    return {"apiVersion": "config.paceline.dev/v1alpha1", "kind": "ControllerConfiguration",
            "trainer": {"image": trainer_image}, "log": {"format": "text"},
            "coordinator": {"address": f"{NAME}.{NAMESPACE}.svc:{COORDINATOR_PORT}"},
            "leaderElection": {"leaseDurationSeconds": LEASE_SECONDS, "renewDeadlineSeconds": RENEW_SECONDS,
                               "retryPeriodSeconds": RETRY_SECONDS}}


def deployment(image, replicas):
    probe = {"httpGet": {"path": "/readyz", "port": HEALTH_PORT}, "periodSeconds": 1}
    container = {
        "name": "controller", "image": image, "args": ["--config", "/etc/paceline/config.json"],
        "env": [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
                for name, path in (("POD_NAME", "metadata.name"), ("POD_IP", "status.podIP"))],
        "ports": [{"name": "coordinator", "containerPort": COORDINATOR_PORT}, {"name": "health", "containerPort": HEALTH_PORT}],
        "readinessProbe": probe, "livenessProbe": {**probe, "httpGet": {"path": "/healthz", "port": HEALTH_PORT}, "periodSeconds": 5},
        "securityContext": {"runAsNonRoot": True, "readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False,
                            "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/paceline"}]}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": LABELS}}
    pod = {"serviceAccountName": NAME, "containers": [container], "topologySpreadConstraints": [spread], "terminationGracePeriodSeconds": 15,
           "volumes": [{"name": "config", "configMap": {"name": NAME}}]}
    return named("apps/v1", "Deployment", spec={"replicas": replicas, "selector": {"matchLabels": LABELS},
                                                "template": {"metadata": {"labels": LABELS}, "spec": pod}})


def objects(image="paceline/controller:dev", trainer_image="paceline/runtime:dev", replicas=2):
    """In an order in which they can be created."""
    # Headless: its name means both replicas, and members take the one that listens, which is the leader.
    service = named("v1", "Service", spec={"clusterIP": "None", "selector": LABELS,
                                           "ports": [{"name": "coordinator", "port": COORDINATOR_PORT}]})
    return [named("v1", "Namespace", name=NAMESPACE, namespace=None), named("v1", "ServiceAccount"),
            *bound("ClusterRole", JOB_RULES, None), *bound("Role", LEASE_RULES, NAMESPACE),
            named("v1", "ConfigMap", data={"config.json": json.dumps(configuration(trainer_image))}),
            service, deployment(image, replicas)]
