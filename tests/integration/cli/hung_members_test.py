"""Members whose process lives and whose heartbeats come, while their training thread is stuck."""

import os

import unittest_report
from cli_support import ENDLESS, SLOW, CliCase, member_of, until

PROGRAM = os.environ["PACELINE_HANGING_MEMBER"]


def job(member, policy, file):
    """A ring of a chief and two workers, of which `member` hangs in a read of its data once there is this file."""
    template = f"template: {{spec: {{containers: [{{name: trainer, command: [{PROGRAM}]}}]}}}}"
    return f"""
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: hangs}}
spec:
  strategy: {{allReduce: {{timeoutSeconds: 15}}}}
  replicaSpecs:
    chief: {{restartPolicy: {policy}, {template}}}
    worker: {{replicas: 2, restartPolicy: {policy}, {template}}}
  training:
    model: {{type: mlp, hidden: [16], classes: 2}}
    data: {{format: custom, custom: {{name: hanging, parameters: {{member: {member}, file: {file}}}}}}}
    optimizer: {{type: SGD, learningRate: 0.01}}
    globalBatchSize: 48
    steps: {ENDLESS}
"""


class HungMembersTest(CliCase):
    def start_hanging(self, member, policy):
        """A run whose `member` hangs now, and its status before."""
        hangs = self.folder / "hangs"
        process = self.start("run", self.write(job(member, policy, hangs)))
        status = until(lambda: (lambda s: s if s and s["step"] > 200 else None)(self.status("hangs")), 40 * SLOW, "it trains")
        hangs.touch()
        return process, status

    def check_fault(self, status, role, index):
        fault = status["status"]["fault"]
        self.assertEqual((fault["kind"], fault["cause"], fault["role"], fault["index"]), ("Hung", "Hung", role, index))
        self.assertEqual([each["kind"] for each in fault["evidence"]][0], "TakesNoStep")

    def test_a_hung_worker_is_replaced_while_the_others_go_on(self):
        process, before = self.start_hanging("worker-1", "OnFailure")

        def look():
            status = self.status("hangs")
            whole = status and len(status["members"]) == 3 and all(m.get("pid") and m["rank"] >= 0 for m in status["members"])
            return status if whole and member_of(status, "worker-1")["pod"].endswith("-1") and status["step"] > before["step"] + 5000 else None
        after = until(look, 60 * SLOW, "another worker-1 trains")
        for name in ("chief-0", "worker-0"):
            self.assertEqual(member_of(after, name)["pid"], member_of(before, name)["pid"], f"{name} goes on")
        self.check_fault(after, "worker", 1)
        self.assertEqual(after["status"]["restarts"]["byCause"], [{"cause": "Hung", "count": 1, "role": "worker"}])
        hung = member_of(before, "worker-1")["pid"]
        until(lambda: not os.path.exists(f"/proc/{hung}"), 10 * SLOW, "the process that hangs is gone")
        self.stop(process)
        self.nothing_left()

    def test_a_hung_chief_ends_a_job_that_replaces_nobody_and_another_one_saves(self):
        process, _ = self.start_hanging("chief-0", "Never")
        _, errors = self.outcome(1, process, 60 * SLOW)
        self.assertIn("chief-0", errors)
        status = self.status("hangs")
        self.assertEqual((status["phase"], status["reason"]), ("Failed", "MemberHung"))
        self.check_fault(status, "chief", 0)
        saved = sorted(path.name for path in (self.state / "runs/hangs/checkpoints").glob("step-*"))
        self.assertEqual([int(name.split("-")[1]) for name in saved], [status["step"]], "worker-0 saves the last step")
        self.nothing_left()


if __name__ == "__main__":
    unittest_report.main("hung_members_test")
