"""What a suite on the real cluster begins with: one cluster for the program, kubectl, a namespace for every test.

A suite is a unittest program, tests/cluster/NAME_test.py: its cases derive from ClusterCase and are decorated with @needs_cluster.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

from machine import cluster, parts, processes, store

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/cluster"
UP_SECONDS, DOWN_SECONDS, KUBECTL_SECONDS = 180, 120, 90

REASON = cluster.why_not() or ("" if parts.are_built() or parts.find_go() else "there is no Go here to build Kubernetes with")
needs_cluster = unittest.skipIf(REASON, REASON)


def cluster_command(*arguments, seconds=UP_SECONDS):
    return subprocess.run([SCRIPT, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=seconds)


def bring_up(name, nodes=2):
    """A cluster that goes when this process does; returns its layout."""
    result = cluster_command("up", "--name", name, "--nodes", nodes, "--while-pid", os.getpid())
    if result.returncode != 0:
        raise AssertionError(f"scripts/cluster up failed:\n{result.stderr}")
    sys.stderr.write(result.stderr)
    return store.load(name)[0]


def take_down(name):
    result = cluster_command("down", "--name", name, seconds=DOWN_SECONDS)
    if result.returncode != 0:
        raise AssertionError(f"scripts/cluster down failed:\n{result.stderr}")


class ClusterCase(unittest.TestCase):
    layout = None   # of the program's one cluster
    node_count = 2

    @classmethod
    def setUpClass(cls):
        if ClusterCase.layout is None:
            name = f"test-{os.getpid()}"
            ClusterCase.layout = bring_up(name, cls.node_count)
            unittest.addModuleCleanup(take_down, name)

    def setUp(self):
        self.namespace = self.id().rsplit(".", 1)[1].replace("_", "-")[:63].strip("-")
        self.kubectl("create", "namespace", self.namespace)
        self.addCleanup(self.kubectl, "delete", "namespace", self.namespace, "--wait=false")
        self.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")

    def run_kubectl(self, *arguments, text=None, layout=None, seconds=KUBECTL_SECONDS, variables=None):
        """The finished process, whatever its status."""
        command = [parts.program("kubectl"), f"--namespace={self.namespace}", *map(str, arguments)]
        environment = dict(os.environ, **cluster.client_environment(layout or self.layout), **(variables or {}))
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=seconds, env=environment,
                              stdin=subprocess.DEVNULL if text is None else None)

    def kubectl(self, *arguments, **keywords):
        result = self.run_kubectl(*arguments, **keywords)
        self.assertEqual(result.returncode, 0, f"kubectl {' '.join(map(str, arguments))}: {result.stderr}{result.stdout}")
        return result.stdout

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def define_jobs(self):
        """Installs crds/. `kubectl wait --for=condition=Established` fails on a definition that has no conditions yet."""
        self.kubectl("apply", "--server-side", "-f", ROOT / "crds/trainingjobs.yaml")
        processes.wait_until("TrainingJobs are served", 30, lambda: self.run_kubectl("get", "trainingjobs.paceline.dev").returncode == 0)

    def wait_for_phase(self, pod, phase, seconds=60):
        """Of a pod; says what became of it instead."""
        result = self.run_kubectl("wait", f"pod/{pod}", f"--for=jsonpath={{.status.phase}}={phase}", f"--timeout={seconds}s", seconds=seconds + 30)
        if result.returncode != 0:
            self.fail(f"pod {pod} is not {phase}: {result.stderr}{self.run_kubectl('describe', 'pod', pod).stdout[-3000:]}")


def pod(name, node=None, script=None, image="paceline/busybox:1", **spec):
    """A pod of one container that runs a shell script."""
    container = {"name": "main", "image": image, "imagePullPolicy": "Never"}
    if script:
        container["command"] = ["sh", "-c", script]
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, **spec}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def look_up(host):
    """Shell words: a host's address, by the C library as other programs do it."""
    return f"$(getent ahostsv4 {host} | sed -n '1s/ .*//p')"


def fetch(host, port, path):
    """Shell words that print what an HTTP server answers; a static busybox's own wget crashes on names."""
    return f"printf 'GET {path} HTTP/1.0\\r\\n\\r\\n' | nc -w 5 {look_up(host)} {port} 2>/dev/null | sed '1,/^\\r$/d'"
