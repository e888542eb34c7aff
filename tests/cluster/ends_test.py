"""How real pods end, and what a job makes of it: by which exit code, and by Kubernetes' own deadline for a pod."""

import signal

import unittest_report
from cluster_case import needs_cluster
from job_case import JobCase, endless, job


def own(name, script, restart, pod=None, **policy):
    """A job of one member with a program of its own, a shell script that knows its pod's name."""
    knows = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    program = {"name": "main", "image": "paceline/busybox:1", "command": ["sh", "-c", script], "env": [knows]}
    template = {"spec": {"terminationGracePeriodSeconds": 1, **(pod or {}), "containers": [program]}}
    made = job(name, workers=0, restart=restart, template=template, runPolicy=policy)
    del made["spec"]["training"]
    return made


def ending(name, *codes, **policy):
    """Its attempts end with these codes, in turn. A pod's name ends in its attempt."""
    return own(name, f"set -- {' '.join(map(str, codes))}; shift ${{POD##*-}}; exit $1", "ExitCode", **policy)


@needs_cluster
class ExitCodeTest(JobCase):
    def test_permanent_codes_fail_the_job(self):
        codes = (1, 127)
        self.apply(*(ending(f"ends-{code}", code, 0) for code in codes))
        for code in codes:
            name = f"ends-{code}"
            self.wait_for(name, "Failed")
            status = self.status(name)
            self.assertEqual((status["reason"], status["restarts"].get("total", 0)), ("MemberExited", 0))
            for words in (f"chief-0 (pod {name}-chief-0-0) exited with code {code}", "exit codes 1 to 127 are permanent"):
                self.assertIn(words, status["message"])
            self.assertEqual(sorted(self.pods(name)), [f"{name}-chief-0-0"])

    def test_retryable_codes_begin_the_next_attempt(self):
        """128 is a code, 130 a signal (SIGINT), 200 a code again."""
        codes = (128, 130, 200)
        self.apply(*(ending(f"ends-{code}", code, 0) for code in codes))
        for code in codes:
            name = f"ends-{code}"
            self.wait_for(name, "Succeeded")
            self.assertEqual(self.status(name)["restarts"]["byCause"], [{"role": "chief", "cause": "Killed", "count": 1}])

    def test_retryable_codes_are_charged_and_a_permanent_one_ends_it(self):
        self.apply(ending("again", 200, 200, 0, backoffLimit=1), ending("at-last", 200, 5, 0, backoffLimit=6))
        for name, reason, code in (("again", "BackoffLimitExceeded", 200), ("at-last", "MemberExited", 5)):
            self.wait_for(name, "Failed")
            status = self.status(name)
            self.assertEqual((status["reason"], status["restarts"]["total"]), (reason, 1))
            self.assertIn(f"chief-0 (pod {name}-chief-0-1) exited with code {code}", status["message"])

    def test_trainers_end_by_the_same_rule(self):
        missing = {"data": {"format": "csv", "train": {"inputs": "data/none.csv"}, "testFraction": 0.2}}
        self.apply(job("wrong", workers=0, restart="ExitCode", training=missing), endless("shot", restart="ExitCode"))
        self.wait_for("wrong", "Failed")
        status = self.status("wrong")
        self.assertEqual(status["restarts"].get("total", 0), 0)
        fault = status["fault"]
        self.assertEqual((status["reason"], fault["kind"], fault["cause"]), ("MemberDataUnreadable", "DataUnreadable", "DataUnreadable"))
        self.assertEqual(fault["exitCode"], 2)
        self.wait_for("shot", "Running")
        self.kill_trainer("shot-worker-0-0", signal.SIGKILL)
        self.wait_until("the next worker", lambda: {"shot-chief-0-0", "shot-worker-0-1"} <= set(self.pods("shot")))
        self.wait_until("it to join", lambda: self.status("shot")["view"]["size"] == 2)
        self.assertEqual(self.status("shot")["restarts"]["byCause"], [{"role": "worker", "cause": "Killed", "count": 1}])


@needs_cluster
class ScopeTest(JobCase):
    def test_a_program_of_its_own_starts_again_alone_or_with_its_role(self):
        script = "case $POD in *-worker-1-0) exit 200;; esac; exec sleep 10000"
        again = {"Replica": ("alone", {"worker-1"}), "Role": ("together", {"worker-0", "worker-1"})}
        for scope, (name, _) in again.items():
            made = own(name, script, "OnFailure")
            roles = made["spec"]["replicaSpecs"]
            roles["worker"] = {**roles["chief"], "replicas": 2, "restartScope": scope}
            self.apply(made)
        for name, places in again.values():
            wanted = {f"{name}-{place}-{int(place in places)}" for place in ("chief-0", "worker-0", "worker-1")}

            def runs(name=name, wanted=wanted):
                pods = self.pods(name)
                return wanted <= set(pods) and all(pods[pod]["status"]["phase"] == "Running" for pod in wanted)
            self.wait_until(f"{wanted} to run", runs)
            self.wait_until("the status", lambda name=name: self.status(name)["reason"] == "PodsRun")
            status = self.status(name)
            self.assertEqual(status["phase"], "Running")
            self.assertEqual(status["restarts"]["byCause"], [{"role": "worker", "cause": "Killed", "count": 1}])
            others = [pod for pod in self.pods(name).values() if pod["metadata"]["name"] in wanted and pod["metadata"]["name"].endswith("-0")]
            self.assertEqual(len(others), 3 - len(places), "the others keep their pods")


@needs_cluster
class PodDeadlineTest(JobCase):
    def test_a_pod_beyond_its_own_deadline_is_told_apart_and_charged(self):
        """The template's activeDeadlineSeconds, which kubelets see to; not the job's."""
        policies = {"Never": ("MemberKilled", 0), "ExitCode": ("MemberKilled", 0), "OnFailure": ("BackoffLimitExceeded", 1)}
        names = {restart: f"late-{restart.lower()}" for restart in policies}
        self.apply(*(own(name, "sleep 10000", restart, {"activeDeadlineSeconds": 2}, backoffLimit=1) for restart, name in names.items()))
        for restart, (reason, restarts) in policies.items():
            name, last = names[restart], f"{names[restart]}-chief-0-{restarts}"
            self.wait_for(name, "Failed")
            status = self.status(name)
            self.assertIn("DeadlineExceeded: Pod was active on the node longer than the specified deadline", status["message"])
            self.assertEqual((status["reason"], status["restarts"].get("total", 0)), (reason, restarts))
            self.assertEqual(status["restarts"].get("byCause", []),
                             [{"role": "chief", "cause": "DeadlineExceeded", "count": 1}] if restarts else [])
            found = self.wait_until("the kubelet's word", lambda last=last: self.pods(name).get(last, {}).get("status", {}).get("reason"))
            self.assertEqual(found, "DeadlineExceeded")


if __name__ == "__main__":
    unittest_report.main("cluster_ends_test")
