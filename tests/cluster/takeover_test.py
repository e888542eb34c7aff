"""What becomes of a job that trains while its controller, or the API server, goes away: nothing. No pod starts again, no step is lost. And what the
next controller knows of what was before it."""

import re
import signal

import unittest_report
from cluster_case import needs_cluster
from job_case import CONTROLLERS, ENDLESS_STEPS, HOME, JOB_SECONDS, ROLLOUT_SECONDS, SLOW, TAKEOVER_SECONDS, JobCase, endless, job
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
        """The other: another process. The kubelet starts one in the same pod at once, which may be the first to find the lease free."""
        before = self.begin("survivor", ENDLESS_STEPS)   # no processor is so fast that it ends before the lease does
        first = self.lease_holder()
        self.kill_controllers(self.leader())
        second = self.wait_until("the other leads", lambda: (holder := self.lease_holder()) != first and holder, TAKEOVER_SECONDS)
        self.wait_for_steps("survivor", max(self.steps_of("survivor"), default=0))
        self.assertEqual(self.status("survivor")["phase"], "Running")
        self.assert_nothing_happened("survivor", before)
        self.apply(job("successor"))
        self.wait_for("successor", "Succeeded")
        self.assertEqual(self.lease_holder(), second)

    def test_all_controllers_are_killed_and_come_back(self):
        before = self.begin("alone", ENDLESS_STEPS)
        self.kill_controllers()
        self.wait_for_steps("alone", max(self.steps_of("alone"), default=0))
        self.assert_nothing_happened("alone", before)

    def test_a_job_ends_while_there_is_no_controller(self):
        before = self.begin("unseen", 6000)
        self.scale_controllers(0)
        self.addCleanup(self.scale_controllers, 2)
        for pod in before:
            self.wait_for_phase(pod, "Succeeded", JOB_SECONDS)
        self.assertEqual(self.status("unseen")["phase"], "Running")
        self.scale_controllers(2)
        self.wait_for("unseen", "Succeeded", ROLLOUT_SECONDS)
        self.assert_nothing_happened("unseen", before)

    def test_restarts_are_counted_on_by_the_next_controller(self):
        """A limit of 2: one restart under the first controller, one under the second, and what fails then ends the job."""
        self.apply(endless("counted", workers=0, restart="OnFailure", runPolicy={"backoffLimit": 2}))
        self.fail_attempt("counted", 0, ends=False)
        first = self.lease_holder()
        self.kill_controllers(self.leader())
        self.wait_until("another controller leads", lambda: self.lease_holder() not in ("", first), TAKEOVER_SECONDS)
        self.fail_attempt("counted", 1, ends=False)
        self.fail_attempt("counted", 2, ends=True)
        status = self.status("counted")
        self.assertEqual((status["reason"], status["restarts"]["total"]), ("BackoffLimitExceeded", 2))
        self.assertEqual(status["restarts"]["byCause"], [{"role": "chief", "cause": "Killed", "count": 2}])
        self.assertIn("counted-chief-0-2", status["message"])

    def fail_attempt(self, name, attempt, ends):
        """Kills the chief of an attempt; returns when the job has ended, or has been started again and counted."""
        pod = f"{name}-chief-0-{attempt}"
        self.wait_until("it to train", lambda: any(m["pod"] == pod and m.get("rank") == 0 for m in self.status(name).get("members", [])))
        self.kill_trainer(f"{name}-chief-0-{attempt}", signal.SIGKILL)
        if ends:
            self.wait_for(name, "Failed")
            self.assertNotIn(f"{name}-chief-0-{attempt + 1}", self.pods(name))
            return
        self.wait_until("the next attempt", lambda: f"{name}-chief-0-{attempt + 1}" in self.pods(name))
        self.wait_until("the restart to be counted", lambda: self.status(name)["restarts"]["total"] == attempt + 1)

    def test_a_server_that_was_deleted_while_nobody_led_is_the_reason(self):
        """The others have lost it, and told nobody; they had ended before there was a controller again."""
        self.apply(endless("bereft", servers=1, restart="OnFailure", strategy={"type": "ParameterServer"}))
        self.wait_for("bereft", "Running")
        for pod in ("bereft-chief-0-0", "bereft-worker-0-0"):
            self.wait_until("its first step", lambda pod=pod: "first step applied" in self.run_kubectl("logs", pod).stdout)
        self.scale_controllers(0)
        self.addCleanup(self.scale_controllers, 2)
        self.wait_until("the end of the controllers", lambda: not self.kubectl(f"--namespace={HOME}", "get", "pods", "-l", CONTROLLERS, "-o", "name"))
        self.kubectl("delete", "pod/bereft-ps-0-0", "--grace-period=0", "--force")
        for pod in ("bereft-chief-0-0", "bereft-worker-0-0"):
            self.wait_for_phase(pod, "Failed", JOB_SECONDS)
        self.scale_controllers(2)
        causes = self.wait_until("the restart", lambda: self.status("bereft")["restarts"].get("byCause"), ROLLOUT_SECONDS)
        self.assertEqual(causes, [{"role": "ps", "cause": "Deleted", "count": 1}])
        events = self.get("events", "--field-selector", "involvedObject.name=bereft,reason=Deleted")["items"]
        self.assertEqual(len(events), 1)
        self.assertRegex(events[0]["message"], r"^ps-0 \(pod bereft-ps-0-0\) was deleted\b.*all members start again")
        self.wait_for("bereft", "Running")

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
