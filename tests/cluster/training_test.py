"""TrainingJobs as real pods on two nodes: they train, they succeed, and nothing is left of a job that is deleted."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import unittest_report
from cluster_case import needs_cluster
from job_case import DIGITS, JobCase, endless, job


DIGITS_SECONDS = 300   # four members on the processors of a machine that may have other work


@needs_cluster
class TrainingTest(JobCase):
    def test_the_digits_example_succeeds(self):
        self.kubectl("apply", "-f", DIGITS)
        self.kubectl("wait", "--for=condition=Succeeded", "tj/digits-allreduce", f"--timeout={DIGITS_SECONDS}s", seconds=DIGITS_SECONDS + 30)
        pods = self.pods("digits-allreduce")
        self.assertEqual(sorted(pods), ["digits-allreduce-chief-0-0", *(f"digits-allreduce-worker-{i}-0" for i in range(3))])
        self.assertEqual({pod["spec"]["nodeName"] for pod in pods.values()}, {"node-1", "node-2"})
        log = self.kubectl("logs", "digits-allreduce-chief-0-0")
        sys.stderr.write(f"\n{log}")
        self.assertIn("view 1: rank 0 of 4", log)
        accuracy = max(float(each) for each in re.findall(r"accuracy ([0-9.]+)", log))
        self.assertGreaterEqual(accuracy, 0.97)
        status = self.status("digits-allreduce")
        self.assertEqual(status["phase"], "Succeeded")
        self.assertGreaterEqual(status["progress"]["testAccuracy"], 0.97)
        self.assertEqual(status["progress"]["step"], int(re.search(r"ends after step (\d+)", log)[1]))
        self.assertEqual(status["model"], "/paceline/model/model.safetensors")

    def test_a_deleted_job_leaves_nothing(self):
        self.apply(endless("gone"))
        self.wait_for("gone", "Running")
        self.assertEqual(sorted(self.children()), ["pod/gone-chief-0-0", "pod/gone-worker-0-0", "secret/gone-token", "service/gone"])
        self.kubectl("delete", "tj/gone", "--timeout=60s")
        self.wait_until("the children's end", lambda: not self.children(), 60)


if __name__ == "__main__":
    unittest_report.main("cluster_training_test")
