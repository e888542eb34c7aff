"""What a job's policies mean on real pods: suspend, deadlines, restarts, clean-up; and what people see when pods can't start."""

import json
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import unittest_report
from cluster_case import needs_cluster
from job_case import JobCase, endless, job


@needs_cluster
class PolicyTest(JobCase):
    def test_the_deadline_ends_a_job(self):
        self.apply(endless("late", runPolicy={"activeDeadlineSeconds": 1}))
        self.wait_for("late", "Failed")
        self.assertEqual(self.status("late")["reason"], "DeadlineExceeded")
        self.wait_until("the pods' end", lambda: not any(pod["status"]["phase"] == "Running" for pod in self.pods("late").values()))

    def test_finished_jobs_go_after_their_time_to_live(self):
        self.apply(job("brief", runPolicy={"ttlSecondsAfterFinished": 0}))
        self.wait_until("the job's end", lambda: not self.kubectl("get", "tj", "-o", "name"))
        self.wait_until("the children's end", lambda: not self.children())

    def test_clean_pod_policies(self):
        self.apply(*(job(policy.lower(), runPolicy={"cleanPodPolicy": policy}) for policy in ("All", "None", "Running")))
        for name in ("all", "none", "running"):
            self.wait_for(name, "Succeeded")
        self.wait_until("the pods' end", lambda: not self.pods("all"))
        for name in ("none", "running"):
            self.assertEqual([pod["status"]["phase"] for pod in self.pods(name).values()], ["Succeeded"] * 2)

    def test_a_failing_job_restarts_up_to_its_limit(self):
        self.apply(job("wrong", restart="OnFailure", training={"data": {"format": "csv", "train": {"inputs": "data/none.csv"}, "testFraction": 0.2}},
                       runPolicy={"backoffLimit": 1}))
        self.wait_for("wrong", "Failed")
        status = self.status("wrong")
        self.assertEqual((status["reason"], status["restarts"]["total"]), ("BackoffLimitExceeded", 1))
        self.assertIn("open data/none.csv: No such file or directory", status["message"])

    def test_a_killed_member_is_named(self):
        self.apply(endless("struck"))
        self.wait_for("struck", "Running")
        self.kill_trainer("struck-worker-0-0", signal.SIGKILL)
        self.wait_for("struck", "Failed")
        message = self.status("struck")["message"]
        for words in ("worker-0", "struck-worker-0-0", "signal 9 (SIGKILL)"):
            self.assertIn(words, message)

    def test_children_that_are_deleted_come_back(self):
        self.apply(endless("whole", restart="OnFailure"))
        self.wait_for("whole", "Running")
        before = {pod["metadata"]["uid"] for pod in self.pods("whole").values()}
        self.kubectl("delete", "service/whole")
        self.wait_until("the service again", lambda: "service/whole" in self.children())
        self.assertEqual({pod["metadata"]["uid"] for pod in self.pods("whole").values()}, before)
        self.kubectl("delete", "pod/whole-worker-0-0", "--grace-period=1")
        self.wait_until("the next attempt", lambda: sorted(self.pods("whole")) == ["whole-chief-0-1", "whole-worker-0-1"])
        self.wait_for("whole", "Running")
        self.assertEqual(self.status("whole")["restarts"]["byCause"], [{"role": "worker", "cause": "Deleted", "count": 1}])

    def test_an_evicted_member_is_not_charged(self):
        self.apply(endless("moved", restart="OnFailure", runPolicy={"backoffLimit": 0}))
        self.wait_for("moved", "Running")
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "moved-chief-0-0", "namespace": self.namespace}}
        self.kubectl("create", "--raw", f"/api/v1/namespaces/{self.namespace}/pods/moved-chief-0-0/eviction", "-f", "-", text=json.dumps(eviction))
        self.wait_until("the next attempt", lambda: sorted(self.pods("moved")) == ["moved-chief-0-1", "moved-worker-0-1"])
        self.wait_for("moved", "Running")
        self.assertEqual(self.status("moved")["restarts"]["byCause"], [{"role": "chief", "cause": "Evicted", "count": 1}])

    def test_a_quota_is_waited_for(self):
        self.kubectl("create", "quota", "none", "--hard=pods=0")
        self.wait_until("the quota", lambda: self.get("quota", "none").get("status", {}).get("hard"))
        self.apply(job("waiting", workers=0))
        self.wait_until("the condition", lambda: "exceeded quota: none" in self.condition("waiting", "Running").get("message", ""), 30)
        self.kubectl("delete", "quota", "none")
        self.wait_for("waiting", "Succeeded")

    def test_a_tenant_without_rights_sees_nothing(self):
        self.apply(job("private", workers=0))
        self.wait_for("private", "Succeeded")
        for words in (("get", "tj"), ("get", "tj", "private"), ("get", "tj", "--all-namespaces"), ("get", "secrets"), ("delete", "tj", "private"),
                      ("logs", "private-chief-0-0"), ("patch", "tj", "private", "--type=merge", "-p={}")):
            result = self.run_kubectl("--as=mallory", *words)
            self.assertNotEqual(result.returncode, 0, words)
            self.assertIn('User "mallory" cannot', result.stderr)
            self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    unittest_report.main("cluster_policy_test")
