"""What becomes of a job that trains while its controller, or the API server, goes away: nothing. No pod starts again, no step is lost."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import unittest_report
from cluster_case import needs_cluster
from job_case import ENDLESS_STEPS, JOB_SECONDS, RELEASE, ROLLOUT_SECONDS, SLOW, TAKEOVER_SECONDS, JobCase, job
from machine import api, cluster, processes


@needs_cluster
class TakeoverTest(JobCase):
    def begin(self, name, steps):
        """A job that trains, and the pods that it has."""
        self.apply(job(name, training={"steps": steps, "evaluation": {"everySteps": 100}}, template=SLOW))
        self.wait_for(name, "Running")
        # Members may train before their kubelet says that they run; their logs can be read after that.
        self.wait_until("the pods run", lambda: all(pod["status"]["phase"] != "Pending" for pod in self.pods(name).values()))
        return {pod: value["metadata"]["uid"] for pod, value in self.pods(name).items()}

    def steps_of(self, name):
        """Those after which the chief has evaluated, as its log has them."""
        return [int(step) for step in re.findall(r"step (\d+): loss", self.kubectl("logs", f"{name}-chief-0-0"))]

    def assert_nothing_happened(self, name, before):
        """No pod was made or started again, and every step was done once."""
        pods = self.pods(name)
        self.assertEqual({pod: value["metadata"]["uid"] for pod, value in pods.items()}, before)
        for pod, value in pods.items():
            self.assertEqual([each["restartCount"] for each in value["status"]["containerStatuses"]], [0], pod)
        status = self.status(name)
        self.assertEqual(status["view"], {"generation": 1, "size": 2})
        self.assertEqual(status["restarts"].get("total", 0), 0)
        steps = self.steps_of(name)
        self.assertEqual(steps, list(range(100, 100 * len(steps) + 1, 100)))

    def wait_for_steps(self, name, more_than):
        """The status is written by the leader: its progress shows that members have found it."""
        self.wait_until(f"progress after step {more_than}", lambda: self.status(name).get("progress", {}).get("step", 0) > more_than)

    def test_the_leader_is_killed_and_the_other_takes_over(self):
        before = self.begin("survivor", ENDLESS_STEPS)   # no processor is so fast that it ends before the lease does
        first = self.leader()
        self.kill_controllers(first)
        second = self.wait_until("the other leads", lambda: self.leader() != first and self.leader(), TAKEOVER_SECONDS)
        self.wait_for_steps("survivor", max(self.steps_of("survivor"), default=0))
        self.assertEqual(self.status("survivor")["phase"], "Running")
        self.assert_nothing_happened("survivor", before)
        self.apply(job("successor"))
        self.wait_for("successor", "Succeeded")
        self.assertEqual(self.leader(), second)

    def test_all_controllers_are_killed_and_come_back(self):
        before = self.begin("alone", ENDLESS_STEPS)
        self.kill_controllers()
        self.wait_for_steps("alone", max(self.steps_of("alone"), default=0))
        self.assert_nothing_happened("alone", before)

    def test_a_job_ends_while_there_is_no_controller(self):
        before = self.begin("unseen", 6000)
        self.in_system("scale", f"deployment/{RELEASE}", "--replicas=0")
        self.addCleanup(self.in_system, "scale", f"deployment/{RELEASE}", "--replicas=2")
        for pod in before:
            self.wait_for_phase(pod, "Succeeded", JOB_SECONDS)
        self.assertEqual(self.status("unseen")["phase"], "Running")
        self.in_system("scale", f"deployment/{RELEASE}", "--replicas=2")
        self.wait_for("unseen", "Succeeded", ROLLOUT_SECONDS)
        self.assert_nothing_happened("unseen", before)

    def test_the_api_server_is_killed(self):
        before = self.begin("patient", ENDLESS_STEPS)
        seen = max(self.steps_of("patient"), default=0)
        cluster.stop(self.layout, "kube-apiserver")
        cluster.start(self.layout, "kube-apiserver")
        server = api.Api(self.layout)
        processes.wait_until("the API server again", 60, lambda: server.call("GET", "/readyz")[0] == 200)
        self.wait_until("progress after that", lambda: max(self.steps_of("patient"), default=0) > seen)
        self.wait_for_steps("patient", seen)
        self.assert_nothing_happened("patient", before)


if __name__ == "__main__":
    unittest_report.main("cluster_takeover_test")
