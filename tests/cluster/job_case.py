"""What a suite of TrainingJobs begins with: the controller, two replicas of it, in the program's cluster; and jobs that tests can steer."""

import os
import pathlib
import shutil
import signal
import sys
import tempfile

from chart_case import CHART, run_helm
from cluster_case import ROOT, ClusterCase
from machine import cluster, processes

HOME, RELEASE, LEASE = "paceline-system", "paceline", "paceline-controller"
CONTROLLERS = "app.kubernetes.io/component=controller"
# Leases are so short that a takeover takes seconds.
VALUES = ("image.repository=paceline/controller", "image.tag=dev", "image.pullPolicy=Never", "config.trainer.image=paceline/runtime:dev",
          "config.log.format=text", "config.leaderElection.leaseDurationSeconds=8", "config.leaderElection.renewDeadlineSeconds=6",
          "config.leaderElection.retryPeriodSeconds=1")
DIGITS = ROOT / "examples/digits-allreduce.yaml"
JOB_LABEL = "paceline.dev/job-name"
JOB_SECONDS, ROLLOUT_SECONDS, TAKEOVER_SECONDS = 120, 120, 60
# Bigger than any test needs: what runs it ends it.
ENDLESS_STEPS = 100_000_000


def job(name, workers=1, chiefs=1, servers=0, training=None, template=None, restart="Never", **spec):
    """A TrainingJob on the digits; `training` and the rest of the spec by their own names."""
    role = {"restartPolicy": restart, **({"template": template} if template else {})}
    counts = {"chief": chiefs, "worker": workers, "ps": servers}
    roles = {role_name: {"replicas": count, **role} for role_name, count in counts.items() if count}
    return {"apiVersion": "paceline.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": {
        "replicaSpecs": roles, "training": {
            "model": {"type": "mlp", "hidden": [32], "classes": 10},
            "data": {"format": "csv", "train": {"inputs": "data/digits.csv.gz"}, "testFraction": 0.2, "normalize": {"scale": 0.0625}},
            "optimizer": {"type": "SGD", "learningRate": 0.05}, "globalBatchSize": 64, "steps": 200, "seed": 1, **(training or {})}, **spec}}


# Members that may use so little of a processor do 200 to 400 steps a second, busy or not.
SLOW = {"spec": {"containers": [{"name": "trainer", "resources": {"limits": {"cpu": "50m"}}}]}}


def endless(name, **keywords):
    return job(name, **{"training": {"steps": ENDLESS_STEPS}, "template": SLOW, **keywords})


class JobCase(ClusterCase):
    operator_runs = False   # in the program's cluster

    def kept_volume(self):
        """A volume of a template, for what members write: it is there on both nodes, and outlives their pods."""
        kept = pathlib.Path(tempfile.mkdtemp(prefix="paceline-kept-"))
        self.addCleanup(shutil.rmtree, kept)
        kept.chmod(0o777)
        return {"name": "paceline", "hostPath": {"path": str(kept)}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not JobCase.operator_runs:
            JobCase.operator_runs = True
            cls.install()

    @classmethod
    def install(cls):
        """Images, and the chart; returns when both replicas are ready."""
        case = cls()
        case.namespace = HOME
        loaded = cluster.load_product(cls.layout, os.environ["PACELINE_BINARY_DIR"])
        case.assertEqual(sorted(loaded), ["paceline/controller:dev", "paceline/runtime:dev"])
        result = run_helm("install", RELEASE, CHART, "--namespace", HOME, "--create-namespace", "--wait", f"--timeout={ROLLOUT_SECONDS}s",
                          *(word for value in VALUES for word in ("--set", value)),
                          environment=dict(os.environ, **cluster.client_environment(cls.layout)))
        if result.returncode != 0:
            case.fail(f"the controller does not start: {result.stderr}{case.controller_story()}")

    def tearDown(self):
        result = self._outcome.result
        if any(test is self for test, _ in (*result.failures, *result.errors)):   # what was there, and what the controller said
            sys.stderr.write(f"\n--- {self.id()}\n{self.job_story()}{self.controller_story()}\n")
        super().tearDown()

    # ---- the controller

    def in_system(self, *arguments):
        return self.run_kubectl(f"--namespace={HOME}", *arguments)

    def controller_story(self):
        return self.in_system("logs", "-l", CONTROLLERS, "--prefix", "--tail=40").stdout

    def leader(self):
        """The pod that holds the lease; empty while nobody does."""
        return self.lease_holder().rsplit("_", 1)[0]

    def lease_holder(self):
        """Its process: another one that the kubelet starts in the same pod has another name."""
        return self.in_system("get", "lease", LEASE, "-o", "jsonpath={.spec.holderIdentity}").stdout

    def scale_controllers(self, count):
        """Returns when so many are ready, and no other is there."""
        scaled = self.in_system("scale", f"deployment/{RELEASE}", f"--replicas={count}")
        self.assertEqual(scaled.returncode, 0, scaled.stderr)
        ready = ("get", "pods", "-l", CONTROLLERS, "-o", "jsonpath={.items[*].status.containerStatuses[*].ready}")
        self.wait_until(f"{count} controllers", lambda: self.in_system(*ready).stdout.split() == ["true"] * count)

    def kill_controllers(self, *pods):
        """SIGKILL for the controllers in these pods, or in all; the kubelet starts them again."""
        names = pods or self.in_system("get", "pods", "-l", CONTROLLERS, "-o", "jsonpath={.items[*].metadata.name}").stdout.split()
        for name in names:
            self.kill("paceline-controller", self.in_system("get", "pod", name, "-o", "jsonpath={.metadata.uid}").stdout)

    def kill(self, program, pod_uid, number=signal.SIGKILL):
        """A signal for a pod's only process that runs this program."""
        pids = self.processes_in(program, pod_uid)
        self.assertEqual(len(pids), 1, f"{program} in pod {pod_uid}")
        for pid in pids:
            self.assertTrue(processes.send(pid, number, lambda p: program in processes.command_line(p)[0]))

    def processes_in(self, program, pod_uid):
        """A pod's processes that run this program."""
        cgroups = {path.relative_to(root) for root in processes.cgroup_roots() for path in processes.cgroups_below(self.layout.cgroup)
                   if pod_uid in str(path) and path.is_relative_to(root)}
        return {pid for cgroup in cgroups for pid in processes.in_cgroup(cgroup) if program in (processes.command_line(pid) or [""])[0]}

    # ---- jobs

    def wait_for(self, name, condition, seconds=JOB_SECONDS):
        """Of a job; says what became of it instead."""
        result = self.run_kubectl("wait", f"tj/{name}", f"--for=condition={condition}", f"--timeout={seconds}s", seconds=seconds + 30)
        if result.returncode != 0:
            self.fail(f"job {name} is not {condition}: {result.stderr}")

    def wait_until(self, what, look, seconds=JOB_SECONDS):
        return processes.wait_until(what, seconds, look, self.job_story)

    def status(self, name):
        return self.get("tj", name).get("status", {})

    def pods(self, name):
        return {pod["metadata"]["name"]: pod for pod in self.get("pods", "-l", f"{JOB_LABEL}={name}")["items"]}

    def children(self):
        """Names of everything in the namespace that a job makes."""
        names = self.kubectl("get", "pods,services,secrets", "-o", "name").split()
        return [name for name in names if not name.startswith("service/kubernetes")]

    def secret(self, name):
        """Of a job, as children() has it."""
        return f"secret/{name}-token-{self.get('tj', name)['metadata']['uid']}"

    def kill_trainer(self, pod, number):
        self.kill("paceline-worker", self.get("pod", pod)["metadata"]["uid"], number)

    def suspend(self, name, value):
        self.kubectl("patch", "tj", name, "--type=merge", f'-p={{"spec":{{"runPolicy":{{"suspend":{value}}}}}}}')

    def condition(self, name, kind):
        return next((each for each in self.status(name).get("conditions", []) if each["type"] == kind), {})

    def job_story(self):
        return "".join(self.run_kubectl(*words).stdout for words in (
            ("get", "tj,pods,services,secrets", "-o", "wide"), ("get", "tj", "-o", "jsonpath={.items[*].status}"),
            ("get", "events", "--sort-by=.lastTimestamp")))
