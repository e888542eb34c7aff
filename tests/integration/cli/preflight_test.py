"""Members are checked before the first step: a slow one is told of, or another process takes its place."""

import json
import os
import pathlib

import unittest_report
from cli_support import ENDLESS, PACELINE, SLOW, CliCase, until

# A member that shares a processor with loops that never end, and gives way to them, has a tenth of it. Free to move, it is alone on another at times.
SLOWED = f"taskset -cp {min(os.sched_getaffinity(0))} $$ >/dev/null; while :; do :; done & while :; do :; done & exec nice -n 7 "


def job(worker, check, replicas=1, steps=ENDLESS):
    """A chief that is as it should be, and workers of this shell command."""
    return f"""
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: checked}}
spec:
  replicaSpecs:
    chief: {{replicas: 1, restartPolicy: OnFailure}}
    worker:
      replicas: {replicas}
      restartPolicy: OnFailure
      template: {{spec: {{containers: [{{name: trainer, command: [/bin/sh, -c, {json.dumps(worker)}]}}]}}}}
  training:
    model: {{type: mlp, hidden: [16], classes: 2}}
    data: {{format: csv, train: {{inputs: points.csv}}}}
    optimizer: {{type: SGD, learningRate: 0.01}}
    globalBatchSize: 12
    steps: {steps}
  preflight: {check}
"""


class PreflightTest(CliCase):
    def setUp(self):
        super().setUp()
        (self.folder / "points.csv").write_text("".join(f"{i},{i % 7},{i % 2}\n" for i in range(64)))
        self.member = pathlib.Path(PACELINE).parent / "paceline-worker"

    def trains_after(self, outcome):
        """The job's status once it trains, after a check of this outcome."""
        def look():
            state = self.status("checked")
            status = (state or {}).get("status", {})
            trains = status.get("preflight") and status.get("view", {}).get("size") == 2 and state["step"] > 0
            return status if trains and status["preflight"]["outcome"] != "Excluded" else None
        status = until(look, 120 * SLOW, "it trains after its check")
        self.assertEqual(status["preflight"]["outcome"], outcome, status["preflight"])
        return status

    def checks(self, events):
        return [event for event in events if event["type"] == "preflight"]

    def test_fit_members_pass_and_train(self):
        events = self.events(self.write(job(f"exec {self.member}", "{factor: 50}", replicas=2, steps=20)), "--name", "checked")
        check, = self.checks(events)
        self.assertEqual((check["outcome"], check["members"]), ("Passed", 3))
        self.assertGreater(check["computeMs"], 0)
        self.assertGreater(check["linkMs"], 0)
        self.assertEqual((events[-1]["phase"], events[-1]["step"]), ("Succeeded", 20))
        self.assertLess([event["type"] for event in events].index("preflight"), [event["type"] for event in events].index("view"))

    def test_a_slow_member_is_told_of_and_trains(self):
        output = self.folder / "output"
        with output.open("w") as stdout:
            process = self.start("run", self.write(job(f"{SLOWED}{self.member}", "{action: Report}")), "--output", "json", stdout=stdout)
        check = self.trains_after("Reported")["preflight"]
        self.assertEqual((check["outcome"], check["members"]), ("Reported", 2))
        self.assertEqual([(each["role"], each["index"], each["part"], each["excluded"]) for each in check["unfit"]],
                         [("worker", 0, "Compute", False)])
        self.assertGreater(check["unfit"][0]["factor"], 2)
        self.stop(process)
        self.nothing_left()

    def test_another_process_takes_the_place_of_a_slow_member(self):
        once = self.folder / "once"
        worker = f"if mkdir {once}; then {SLOWED}{self.member}; fi; exec {self.member}"
        output = self.folder / "output"
        with output.open("w") as stdout:
            process = self.start("run", self.write(job(worker, "{}")), "--output", "json", stdout=stdout)
        status = self.trains_after("Passed")
        self.assertEqual([(each["pod"], each["successor"], each["outcome"]) for each in status["stragglerReplacements"]],
                         [("checked-worker-0-0", "checked-worker-0-1", "Excluded")])
        self.assertEqual([(each["cause"], each["count"]) for each in status["restarts"]["byCause"]], [("Unfit", 1)])
        self.stop(process)
        told = self.checks(map(json.loads, output.read_text().splitlines()))
        self.assertEqual([(each["outcome"], [member["role"] for member in each.get("unfit", [])]) for each in told],
                         [("Excluded", ["worker"]), ("Passed", [])])
        self.nothing_left()


if __name__ == "__main__":
    unittest_report.main("preflight_test")
