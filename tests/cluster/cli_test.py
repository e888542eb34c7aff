"""The paceline command on a real cluster: against the API server, kubelets and rights as they are. No controller runs: jobs are objects, their pods are
made by hand, their status is patched."""

import json
import os
import re
import signal
import subprocess

import unittest_report
from cluster_case import ClusterCase, needs_cluster, pod
from command_case import COMMAND_SECONDS, PACELINE, CommandCase
from machine import cluster, parts, processes

JOB = """apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  replicaSpecs:
    chief: {{replicas: 1}}
    worker: {{replicas: 2, minReplicas: 1, maxReplicas: 3, restartPolicy: OnFailure}}
  training:
    model: {{type: mlp, hidden: [32], classes: 10}}
    data: {{format: csv, train: {{inputs: digits.csv}}, testFraction: 0.2}}
    optimizer: {{learningRate: 0.1}}
    globalBatchSize: 64
    steps: {steps}
"""
RUNNING = {"phase": "Running", "reason": "MembersTrain", "message": "view 1 with 3 members trains", "observedGeneration": 1,
           "startTime": "2026-01-31T12:00:00Z", "restarts": {"size": 3}, "view": {"generation": 1, "size": 3},
           "replicaStatuses": [{"role": "chief", "active": 1, "ready": 1}, {"role": "worker", "active": 2, "ready": 2}],
           "conditions": [{"type": "Running", "status": "True", "reason": "MembersTrain", "message": "all train",
                           "lastTransitionTime": "2026-01-31T12:00:05Z"}],
           "progress": {"step": 40, "totalSteps": 200, "loss": 0.5, "samplesPerSecond": 6400.0},
           "members": [{"role": "worker", "index": 0, "rank": 1, "pod": "digits-worker-0-0", "phase": "Training", "step": 40,
                        "computeMs": 7.5, "waitMs": 2.5, "stepMs": 10}]}


def member(job, role, index, script, attempt=0, **spec):
    """A pod as the controller would make it, but for its command."""
    labels = {"paceline.dev/job-name": job, "paceline.dev/role": role, "paceline.dev/index": str(index), "paceline.dev/attempt": str(attempt)}
    result = pod(f"{job}-{role}-{index}-{attempt}", script=script, **spec)
    result["metadata"]["labels"] = labels
    return result


@needs_cluster
class CliTest(CommandCase, ClusterCase):
    installed = False

    def setUp(self):
        super().setUp()
        if not CliTest.installed:
            self.define_jobs()
            CliTest.installed = True

    def make(self, name="digits", steps=200, status=None):
        self.assertIn(f"trainingjob.paceline.dev/{name} created", self.paceline("apply", "-f", "-", text=JOB.format(name=name, steps=steps)))
        if status:
            self.kubectl("patch", "trainingjob", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))

    # ---- apply, get, describe, delete

    def test_apply_get_and_delete(self):
        file = self.folder / "job.yaml"
        file.write_text(JOB.format(name="digits", steps=200))
        self.assertIn("digits created (server dry run)", self.paceline("apply", "-f", file, "--dry-run=server"))
        self.assertIn("No jobs in namespace", self.run_paceline("get").stderr)
        self.assertEqual(self.paceline("apply", "-f", file), "trainingjob.paceline.dev/digits created\n")
        self.assertEqual(self.paceline("apply", "-f", file), "trainingjob.paceline.dev/digits unchanged\n")
        self.assertRegex(self.paceline("get"), r"NAME +PHASE +READY.*\ndigits +Pending +0/3 ")
        self.assertIn(self.namespace, self.run_paceline("get", "-A", ns=False).stdout)
        stored = json.loads(self.paceline("get", "tj/digits", "-o", "json"))
        self.assertEqual(stored["spec"]["training"]["steps"], 200)
        self.assertEqual([manager["manager"] for manager in self.get("tj", "digits", "--show-managed-fields")["metadata"]["managedFields"]], ["paceline"])
        self.assertIn("unchanged", self.paceline("apply", "-f", "-", text=self.paceline("get", "digits", "-o", "yaml")))
        self.assertEqual(self.paceline("delete", self.paceline("get", "-o", "name").strip()), "trainingjob.paceline.dev/digits deleted\n")
        self.refused(3, "there is no job \"digits\" in namespace .*; it has none", "get", "digits")

    def test_bad_files_are_told_before_the_server_is_asked(self):
        file = self.folder / "bad.yaml"
        file.write_text(JOB.format(name="digits", steps=0))
        self.refused(2, r"bad\.yaml:\d+:\d+: error: spec\.training\.steps", "apply", "-f", file, "-f", file)
        self.assertEqual(self.get("trainingjobs")["items"], [])

    def test_an_edit_that_is_not_allowed_names_the_field(self):
        self.make(steps=200)
        self.refused(2, r"(?s)spec\.training.*spec\.training\.steps may not be edited from .*paceline delete digits", "apply", "-f", "-",
                     text=JOB.format(name="digits", steps=300))

    def test_field_set_by_others_is_a_conflict(self):
        self.make()
        self.paceline("scale", "digits", "worker=3")
        self.refused(4, r"(?s)others have set these fields.*replicas.*--force-conflicts", "apply", "-f", "-", text=JOB.format(name="digits", steps=200))
        self.assertIn("configured", self.paceline("apply", "-f", "-", "--force-conflicts", text=JOB.format(name="digits", steps=200)))

    def test_delete_waits_for_finalizers(self):
        hold = lambda name, finalizers: self.kubectl("patch", "tj", name, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": finalizers}}))
        for name in ("held", "digits"):
            self.make(name)
            hold(name, ["example.org/hold"])
            self.addCleanup(self.run_kubectl, "patch", "tj", name, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        self.refused(4, "metadata.finalizers", "delete", "held", "--timeout", "1s")
        self.assertRegex(self.paceline("get"), "held +Deleting")
        waiting = self.start("delete", "digits")
        processes.wait_until("its word has come", COMMAND_SECONDS, lambda: re.search("digits +Deleting", self.paceline("get")))
        hold("digits", None)
        self.assertEqual(waiting.wait(COMMAND_SECONDS), 0)

    def test_a_cluster_without_paceline_and_a_user_without_rights(self):
        self.make()
        self.kubectl("create", "serviceaccount", "eve")
        token = self.kubectl("create", "token", "eve").strip()
        config = self.get_config()
        config["users"] = [{"name": "eve", "user": {"token": token}}]
        config["contexts"][0]["context"]["user"] = "eve"
        eve = self.folder / "eve.json"
        eve.write_text(json.dumps(config))
        self.refused(4, "(?s)you may not list the jobs of namespace.*kubectl auth can-i list trainingjobs.paceline.dev", "get", "--kubeconfig", eve)
        self.refused(4, "you may not apply job", "apply", "-f", "-", "--kubeconfig", eve, text=JOB.format(name="other", steps=1))
        config["users"][0]["user"]["token"] = "nonsense"
        eve.write_text(json.dumps(config))
        self.refused(4, "does not accept who you are", "get", "--kubeconfig", eve)
        config["clusters"][0]["cluster"]["server"] = f"https://{self.layout.host_address}:1"
        eve.write_text(json.dumps(config))
        self.refused(4, "no answer from https://", "get", "--kubeconfig", eve)

    def get_config(self):
        return json.loads(self.kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))

    # ---- with pods

    def test_describe_logs_top_and_explain_with_pods(self):
        self.make(status=RUNNING)
        self.apply(member("digits", "chief", 0, "echo from the chief"), member("digits", "worker", 0, "echo one; echo two; sleep 3600"),
                   member("digits", "worker", 1, "true", image="paceline/no-such-image:1"))
        self.wait_for_phase("digits-chief-0-0", "Succeeded")
        self.wait_for_phase("digits-worker-0-0", "Running")
        self.assertEqual(self.paceline("logs", "digits", "worker/0", "--tail", "1"), "two\n")
        self.assertEqual(self.paceline("logs", "digits", "chief"), "chief-0 | from the chief\n")
        processes.wait_until("the image to be missed", 60, lambda: "ErrImageNeverPull" in self.paceline("describe", "digits"))
        text = self.paceline("describe", "digits")
        for expected in ("digits  Running", r"chief-0 +digits-chief-0-0 +node-\d +Succeeded", "MembersTrain", r"pod/digits-chief-0-0", r"Members:\n"):
            self.assertRegex(text, expected)
        self.assertRegex(self.paceline("top", "digits", "--once"),
                         r"(?s)digits  Running.*step 40/200.*worker-0 +node-\d +Training +40 +- +7\.50 +2\.50 +- +- +10\.0")
        self.assertRegex(self.paceline("explain", "digits"), r"(?s)Running \(MembersTrain\), 3 pods.*What the controller would do now")
        self.assertRegex(self.paceline("events", "digits"), r"(?s)AGE +TYPE.*pod/digits-chief-0-0")

    def test_following_logs_reads_on_and_ends_with_the_job(self):
        self.make(status=RUNNING)
        following = self.start("logs", "digits", "-f")
        self.apply(member("digits", "worker", 0, "echo first; sleep 1; for i in 1 2 3; do echo line $i; sleep 1; done"))
        self.assertIn("worker-0 | first\n", self.read_until(following, "line 1"))
        cluster.stop(self.layout, "kube-apiserver")
        cluster.start(self.layout, "kube-apiserver")
        self.assertEqual(self.read_until(following, "line 3"), "worker-0 | line 2\nworker-0 | line 3\n")
        self.kubectl("patch", "tj", "digits", "--subresource=status", "--type=merge", "-p", '{"status": {"phase": "Succeeded"}}')
        self.assertEqual(following.wait(COMMAND_SECONDS), 0, following.stderr.read())

    def test_ctrl_c_ends_what_follows(self):
        self.make(status=RUNNING)
        self.apply(member("digits", "worker", 0, "echo first; exec sleep 3600"))
        self.wait_for_phase("digits-worker-0-0", "Running")
        for words, heard, code in ((("logs", "digits", "-f"), "first", 130), (("get", "-w"), "digits", 130), (("events", "-w"), "digits-worker-0-0", 130),
                                   (("top", "digits"), "step 40/200", 0)):
            with self.subTest(words):
                process = self.start(*words)
                self.read_until(process, heard)
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(COMMAND_SECONDS), code)
                self.assertEqual(process.stderr.read(), "")

    def test_watching_shows_changes(self):
        self.make()
        watching = self.start("get", "-w")
        self.read_until(watching, "digits +Pending")
        self.kubectl("patch", "tj", "digits", "--subresource=status", "--type=merge", "-p", json.dumps({"status": RUNNING}))
        self.read_until(watching, "digits +Running +3/3 +40/200")

    # ---- suspend, resume, scale

    def test_suspend_resume_and_scale(self):
        self.make(status=RUNNING)
        self.assertIn("suspended", self.paceline("suspend", "digits"))
        self.assertEqual(self.get("tj", "digits")["spec"]["runPolicy"]["suspend"], True)
        self.assertIn("resume digits", self.paceline("describe", "digits"))
        self.assertIn("resumed", self.paceline("resume", "tj/digits"))
        self.assertIn("worker from 2 to 3", self.paceline("scale", "digits", "worker=3"))
        self.assertEqual(self.get("tj", "digits")["spec"]["replicaSpecs"]["worker"]["replicas"], 3)
        self.refused(2, "maxReplicas", "scale", "digits", "worker=4")
        self.refused(2, "has no role evaluator", "scale", "digits", "evaluator=1")

    # ---- kubectl paceline

    def test_kubectl_finds_it(self):
        self.make()
        environment = dict(self.environment(), PATH=f"{PACELINE.parent}:{os.environ['PATH']}")
        result = subprocess.run([parts.program("kubectl"), "paceline", "get", "-n", self.namespace], capture_output=True, text=True,
                                timeout=COMMAND_SECONDS, env=environment, stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("digits", result.stdout)


if __name__ == "__main__":
    unittest_report.main("cli_test")
