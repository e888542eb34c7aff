"""Rings on real pods that lose members: what a suite, and benchmarks/recovery, do to them and see of them."""

import signal
import time

from job_case import JOB_LABEL, TAKEOVER_SECONDS, JobCase, job
from machine import network, processes

HOSTNAME = "kubernetes.io/hostname"


def ring(name, home, pod, training, **spec):
    """A chief on the node `home`, and two workers, of which each node has one."""
    apart = {"topologyKey": HOSTNAME, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
             "labelSelector": {"matchLabels": {JOB_LABEL: name, "paceline.dev/role": "worker"}}}
    made = job(name, workers=2, restart="OnFailure", training=training, **spec)
    roles = made["spec"]["replicaSpecs"]
    roles["chief"]["template"] = {"spec": {**pod, "nodeSelector": {HOSTNAME: home}}}
    roles["worker"]["template"] = {"spec": {**pod, "topologySpreadConstraints": [apart]}}
    return made


def successor_of(pod):
    stem, attempt = pod.rsplit("-", 1)
    return f"{stem}-{int(attempt) + 1}"


class RingCase(JobCase):
    def nodes(self):
        """The leader's, and the other one."""
        leader = self.wait_until("a leader", self.leader)
        home = self.in_system("get", "pod", leader, "-o", "jsonpath={.spec.nodeName}").stdout
        return home, {"node-1": "node-2", "node-2": "node-1"}[home]

    def begin(self, name, home, pod, training, **spec):
        """A ring that trains: its worker on the node `home`, and the other one."""
        self.apply(ring(name, home, pod, training, **spec))
        self.wait_until_whole(name, {f"{name}-chief-0-0", f"{name}-worker-0-0", f"{name}-worker-1-0"})
        by_node = {value["spec"]["nodeName"]: each for each, value in self.pods(name).items() if "-worker-" in each}
        self.assertEqual(len(by_node), 2)
        return by_node.pop(home), by_node.popitem()[1]

    def wait_until_whole(self, name, pods):
        """All of these train in one view, and their kubelets know that they run."""
        def look():
            status = self.status(name)
            members = {member["pod"] for member in status.get("members", []) if member["rank"] >= 0}
            running = {pod for pod, value in self.pods(name).items() if value["status"]["phase"] == "Running"}
            return members == pods and status["view"]["size"] == len(pods) and pods <= running
        self.wait_until(f"{name} to be whole: {sorted(pods)}", look)

    def lives(self, name):
        """Each pod's uid, and how often its containers were started again."""
        return {pod: (value["metadata"]["uid"], [each["restartCount"] for each in value["status"].get("containerStatuses", [])])
                for pod, value in self.pods(name).items()}

    def delete(self, pod):
        self.kubectl("delete", "pod", pod, "--wait=false")

    def plug(self, node, value):
        network.plug(self.layout, self.layout.node(node), value)

    def kill_while_nobody_leads(self, pod):
        """The leader, and then this member; returns when that was, and who led."""
        first = self.lease_holder()
        self.kill_controllers(self.leader())
        self.kill_trainer(pod, signal.SIGKILL)
        killed_at = time.time()
        self.assertEqual(self.lease_holder(), first, "nobody has taken over yet")
        return killed_at, first

    def wait_for_another_leader(self, first):
        return self.wait_until("another leader", lambda: (holder := self.lease_holder()) not in ("", first) and holder, TAKEOVER_SECONDS)

    def unthrottle(self, name):
        """Its containers may use as much of the processors as there is."""
        uids = [pod["metadata"]["uid"] for pod in self.pods(name).values()]
        for folder in reversed(processes.cgroups_below(self.layout.cgroup)):
            if any(uid in str(folder) for uid in uids):
                for file, value in (("cpu.cfs_quota_us", "-1"), ("cpu.max", "max")):
                    if (folder / file).exists():
                        (folder / file).write_text(value)
