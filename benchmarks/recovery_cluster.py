"""benchmarks/recovery --cluster: a ring of a chief and two workers on two nodes of a real Kubernetes on this machine, and what the tests of clusters do
to it (tests/cluster/ring_case.py). Each round is a job of its own; the controller and its two replicas are those of the tests, with a lease of 8 s."""

import contextlib
import os
import pathlib
import signal
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/cluster"))
os.environ.setdefault("PACELINE_BINARY_DIR", str(ROOT / "build/release"))

import recovery_log  # noqa: E402
from cluster_case import REASON  # noqa: E402
from job_case import CONTROLLERS, ENDLESS_STEPS  # noqa: E402
from ring_case import RingCase, successor_of  # noqa: E402

TRAINING = {"model": {"type": "mlp", "hidden": [256], "classes": 10}, "globalBatchSize": 256, "steps": ENDLESS_STEPS,
            "evaluation": {"everySteps": 100_000}}
CONTAINER = {"containers": [{"name": "trainer"}]}
KILLED, DELETED, CHIEF, CUT, UNLED = "process killed", "pod deleted", "chief deleted", "node cut off", "controller and worker killed"
FAULTS = (KILLED, DELETED, CHIEF, CUT, UNLED)
COLUMNS = ("noticed", "another leads", "next view", "first step", "back")


class Bench(RingCase):
    """Its steps are no tests, but their set-up and their waits are the same."""

    def rings(self):
        pass

    def lines(self, pods):
        for pod in pods:
            yield from recovery_log.lines_of(self.kubectl("logs", pod))

    def leading_since(self, fault_at):
        """When another controller said that it leads."""
        says = self.in_system("logs", "-l", CONTROLLERS, "--tail=-1").stdout
        return min((at for at, text in recovery_log.lines_of(says) if at > fault_at and "this replica leads" in text), default=None)

    def strike(self, fault, pod, away):
        """Does it to a pod, or to the node `away`; returns when, and who led before where nobody does any more."""
        if fault == UNLED:
            return self.kill_while_nobody_leads(pod)
        if fault == KILLED:
            self.kill_trainer(pod, signal.SIGKILL)
            return time.time(), None
        fault_at = time.time()
        if fault == CUT:
            self.plug(away, False)
        else:
            self.delete(pod)   # kubectl's own time is in it
        return fault_at, None

    def one_round(self, fault, turn):
        name = f"ring-{turn}-{FAULTS.index(fault)}"
        home, away = self.nodes()
        steady, moving = self.begin(name, home, CONTAINER, TRAINING)
        chief = f"{name}-chief-0-0"
        self.wait_until("steps", lambda: self.status(name).get("progress", {}).get("step", 0) > 200)
        victim = chief if fault == CHIEF else moving
        survivors = {steady, chief, moving} - {victim}
        with contextlib.ExitStack() as healing:
            if fault == CUT:
                healing.callback(self.kubectl, "wait", f"node/{away}", "--for=condition=Ready", "--timeout=60s")
                healing.callback(self.plug, away, True)
            fault_at, first = self.strike(fault, victim, away)
            if first:
                self.wait_for_another_leader(first)
            self.wait_until_whole(name, survivors | {successor_of(victim)})
            found = self.wait_until("its steps", lambda: (lambda s: s if s and s["back"] else None)(
                recovery_log.stages(self.lines(survivors), fault_at)))
            leads = self.leading_since(fault_at) if first else None
            found["another leads"] = leads and (leads - fault_at) * 1000
            if first:   # a pod whose container is killed again and again is started later and later
                self.in_system("delete", "pod", first.rsplit("_", 1)[0], "--wait=false")
                self.scale_controllers(2)
        self.kubectl("delete", f"tj/{name}", "--timeout=60s")
        self.wait_until("the pods' end", lambda: not self.pods(name))
        return found


def run(rounds, faults, say):
    """Milliseconds by fault, of each round."""
    if REASON:
        sys.exit(f"recovery: no cluster here: {REASON}")
    results = {fault: [] for fault in faults}
    try:
        Bench.setUpClass()
        bench = Bench("rings")
        bench.setUp()
        for turn in range(rounds):
            for fault in faults:
                results[fault].append(bench.one_round(fault, turn))
            say(turn)
    finally:
        unittest.doModuleCleanups()
    return results
